//! Where the programs of PostgreSQL are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the folder with the programs.
pub const VARIABLE: &str = "TOKENRAIL_TEST_POSTGRES";

const PROGRAMS: [&str; 4] = ["postgres", "initdb", "psql", "pg_basebackup"];

/// Debian has one folder here for each major version. None of them is on `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder with the programs.
pub(crate) fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let folder = PathBuf::from(named);
        assert!(is_complete(&folder), "{VARIABLE}: {} lacks one of {PROGRAMS:?}", folder.display());
        return folder;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain(debian()).find(|folder| is_complete(folder));
    found.unwrap_or_else(|| {
        panic!("PostgreSQL is missing: install it (Debian: postgresql), or name its folder in {VARIABLE}")
    })
}

/// A command that runs one of the programs without any setting of whoever runs the tests.
pub(crate) fn command(name: &str) -> Command {
    clean(Command::new(folder().join(name)))
}

/// The command without the variables that all clients of PostgreSQL read.
pub(crate) fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
    command
}

/// Runs the command to its end, which must be a success. Returns what it printed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let (said, complained) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{complained}", output.status);
    String::from_utf8_lossy(said).into_owned()
}

/// Whether all programs are there. Some folders have links to a few of them.
fn is_complete(folder: &Path) -> bool {
    PROGRAMS.iter().all(|name| folder.join(name).is_file())
}

/// Debian's folders, the newest version first.
fn debian() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let version = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<u32>().ok();
    let mut versions: Vec<_> =
        entries.filter_map(|entry| Some((version(&entry.file_name())?, entry.path().join("bin")))).collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}
