//! The programs of others that tests are tried with: a browser, a tracer, testers of HTTP interfaces and of sockets.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, process, workspace};

/// Packages of Python at a known version: a newer one may ask for more.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const KOSOKU: &str = "kosoku==0.1.0";

/// Says what an environment holds. It is written last: a fetch that broke off is begun again.
const STAMP: &str = "fetched";

const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// A program that tests need: they get its path by a variable, and those that need it have a name in their path.
pub(crate) struct Tool {
    /// Its row of the table.
    pub(crate) what: &'static str,
    pub(crate) tests: &'static str,
    pub(crate) variable: &'static str,
    ready: fn() -> Result<PathBuf, Failure>,
}

/// In the path of each test that runs the server under strace.
pub(crate) const STRACE_TESTS: &str = "_strace";

pub(crate) const TOOLS: [Tool; 5] = [
    Tool { what: "chromium", tests: "in_chromium", variable: "TOKENRAIL_TEST_CHROMIUM", ready: chromium },
    Tool {
        what: "schemathesis",
        tests: "with_schemathesis",
        variable: "TOKENRAIL_TEST_SCHEMATHESIS",
        ready: schemathesis,
    },
    Tool { what: "kosoku", tests: "with_kosoku", variable: "TOKENRAIL_TEST_KOSOKU", ready: kosoku },
    Tool {
        what: "slowhttptest",
        tests: "with_slowhttptest",
        variable: "TOKENRAIL_TEST_SLOWHTTPTEST",
        ready: slowhttptest,
    },
    Tool { what: "strace", tests: STRACE_TESTS, variable: "TOKENRAIL_TEST_STRACE", ready: strace },
];

impl Tool {
    /// The program, fetched if it is not there yet. The error is the reason why it can't be had.
    pub(crate) fn ready(&self) -> Result<PathBuf, Failure> {
        (self.ready)()
    }
}

fn chromium() -> Result<PathBuf, Failure> {
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
    found(&names).map_or_else(|| of_the_system("chromium", &names), Ok)
}

fn strace() -> Result<PathBuf, Failure> {
    found(&["strace"]).map_or_else(|| of_the_system("strace", &["strace"]), Ok)
}

fn slowhttptest() -> Result<PathBuf, Failure> {
    found(&["slowhttptest"]).map_or_else(|| of_the_system("slowhttptest", &["slowhttptest"]), Ok)
}

fn schemathesis() -> Result<PathBuf, Failure> {
    of_python(SCHEMATHESIS)
}

fn kosoku() -> Result<PathBuf, Failure> {
    of_python(KOSOKU)
}

/// In an environment of its own in the target folder, so that nothing on this machine changes.
fn of_python(package: &str) -> Result<PathBuf, Failure> {
    let name = package.split('=').next().unwrap_or_default();
    let folder = workspace::target().join(name);
    let program = folder.join("bin").join(name);
    if program.is_file() && is_fetched(&folder, package) {
        return Ok(program);
    }
    let mut make = venv(&folder);
    if process::step_within(FETCH_LIMIT, "making a Python environment", &mut make).is_err() {
        // Debian keeps a part of Python in a package of its own.
        install("python3-venv")?;
        process::step_within(FETCH_LIMIT, "making a Python environment", &mut venv(&folder))?;
    }
    let mut fetch = Command::new(folder.join("bin/pip"));
    fetch.args(["install", "--quiet", "--disable-pip-version-check", "--no-input", package]);
    process::step_within(FETCH_LIMIT, &format!("fetching {package}"), &mut fetch)?;
    if !program.is_file() {
        return Err(Failure::new(format!("{package} was installed, and is not there")));
    }
    let stamp = folder.join(STAMP);
    std::fs::write(&stamp, package)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))?;
    Ok(program)
}

fn venv(folder: &Path) -> Command {
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(folder);
    make
}

fn is_fetched(folder: &Path, package: &str) -> bool {
    std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|fetched| fetched == package)
}

fn of_the_system(package: &str, names: &[&str]) -> Result<PathBuf, Failure> {
    install(package)?;
    found(names).ok_or_else(|| Failure::new(format!("{package} was installed, and is not on PATH")))
}

/// On a bare machine that is ours to change, such as a build container, the system installs what is missing.
pub(crate) fn install(package: &str) -> Result<(), Failure> {
    let missing = format!("{package} is missing; install it, then try again");
    if !is_root() || found(&["apt-get"]).is_none() {
        return Err(Failure::new(missing));
    }
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(args);
        process::step_within(FETCH_LIMIT, &format!("installing {package} by apt-get"), &mut apt)
    };
    let installed =
        apt(&["update"]).and_then(|()| apt(&["install", "--yes", "--no-install-recommends", package]));
    installed.map_err(|failure| Failure::new(format!("{missing} ({failure})")))
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

/// The first of these programs that is on `PATH`.
pub(crate) fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_first_of_its_names() {
        assert!(found(&["no-such-program-anywhere", "sh"]).is_some_and(|path| path.ends_with("sh")));
        assert_eq!(found(&["no-such-program-anywhere"]), None);
    }

    #[test]
    fn only_the_known_version_will_do() {
        let folder = std::env::temp_dir().join(format!("xtask-tools-{}", std::process::id()));
        assert!(!is_fetched(&folder, KOSOKU), "nothing is there");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(STAMP), KOSOKU).unwrap();
        let (same, other) = (is_fetched(&folder, KOSOKU), is_fetched(&folder, "kosoku==0.2.0"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(same && !other);
    }
}
