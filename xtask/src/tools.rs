//! The programs of others that tests are tried with: a browser, a tracer, testers of HTTP interfaces and of sockets.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, process, python, workspace};

/// Packages of Python at a known version: a newer one may ask for more.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const KOSOKU: &str = "kosoku==0.1.0";

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

pub(crate) const CHROMIUM: Tool =
    Tool { what: "chromium", tests: "in_chromium", variable: "TOKENRAIL_TEST_CHROMIUM", ready: chromium };

pub(crate) const TOOLS: [Tool; 5] = [
    CHROMIUM,
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
    of_the_system("chromium", &names)
}

fn strace() -> Result<PathBuf, Failure> {
    of_the_system("strace", &["strace"])
}

fn slowhttptest() -> Result<PathBuf, Failure> {
    of_the_system("slowhttptest", &["slowhttptest"])
}

fn schemathesis() -> Result<PathBuf, Failure> {
    of_python(SCHEMATHESIS)
}

fn kosoku() -> Result<PathBuf, Failure> {
    of_python(KOSOKU)
}

/// In an environment of its own, so that nothing on this machine changes.
fn of_python(package: &str) -> Result<PathBuf, Failure> {
    let name = package.split('=').next().unwrap_or_default();
    let folder = workspace::target().join(name);
    python::environment(&folder, package)?;
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::new(format!("{package} was installed, and is not there")))
}

/// The first of these programs that is there, or else that of the system's package.
fn of_the_system(package: &str, names: &[&str]) -> Result<PathBuf, Failure> {
    if let Some(program) = found(names) {
        return Ok(program);
    }
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
}
