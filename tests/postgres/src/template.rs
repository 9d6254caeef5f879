//! A data folder that is made once and then copied: `initdb` takes seconds.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::succeed;
use crate::sweeper::SweptFolder;
use crate::{PASSWORD, ROLE, account, programs};

/// Increase it when something changes here: older templates are then left alone.
const FORMAT: u32 = 1;

/// Makes `data` a fresh data folder.
pub(crate) fn copy_to(data: &Path) {
    copy(&template(), data);
}

/// The template, which is made if it is missing. Other test programs that need it wait.
fn template() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let place = builds().join("postgres").join(format!("{}-{user}-{FORMAT}", version()));
    fs::create_dir_all(&place).expect("a folder beside the tests");
    let lock = File::create(place.join("lock")).expect("a lock file");
    lock.lock().expect("a lock");
    let data = place.join("data");
    if !data.is_dir() {
        // A test program that was killed here has left a part.
        let unfinished = place.join("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).expect("removed");
        }
        make(&unfinished);
        fs::rename(&unfinished, &data).expect("renamed");
    }
    data
}

/// The folder with the builds of this profile, such as `target/debug`.
fn builds() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this test");
    let builds = program.parent().and_then(Path::parent).expect("target/debug");
    builds.to_path_buf()
}

/// Such as `15.18`.
fn version() -> String {
    let said = programs::command("postgres").arg("--version").output().expect("postgres runs").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    version.unwrap_or_else(|| panic!("a version, not {said:?}")).to_owned()
}

/// Makes `unfinished` a data folder that no other one was copied from.
pub(crate) fn make(unfinished: &Path) {
    // The account of the server may not reach the folder of the builds.
    let folder = SweptFolder::new();
    let data = folder.path().join("data");
    let mut initdb = account::command("initdb");
    initdb.args(["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"]);
    initdb.args(["--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync", "-D"]).arg(&data);
    succeed(&mut initdb);

    let mut alone = account::command("postgres");
    alone.args(["--single", "-F", "-D"]).arg(&data).arg("postgres");
    let mut alone = alone.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("postgres starts");
    let sql = format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'\n");
    alone.stdin.take().expect("a pipe").write_all(sql.as_bytes()).expect("written");
    assert!(alone.wait().expect("an end").success(), "cannot make the role {ROLE}");
    copy(&data, unfinished);
}

/// Copies a folder with its owners.
fn copy(from: &Path, to: &Path) {
    succeed(Command::new("cp").arg("-a").arg(from).arg(to));
}
