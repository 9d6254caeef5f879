//! Third-party programs that tests use: a browser, a tracer, testers of HTTP interfaces and of sockets.

use std::path::PathBuf;

use crate::{Failure, python, system, workspace};

/// Python packages at a known version: a newer one may require more of the server.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const KOSOKU: &str = "kosoku==0.1.0";

/// A program that tests need. They receive its path in `variable`, and those that need it have `tests` in their path.
pub(crate) struct Tool {
    /// Its row in the table.
    pub(crate) what: &'static str,
    pub(crate) tests: &'static str,
    pub(crate) variable: &'static str,
    ready: fn() -> Result<PathBuf, Failure>,
}

/// Part of the path of each test that runs the server under strace.
pub(crate) const STRACE_TESTS: &str = "_strace";

pub(crate) const CHROMIUM: Tool =
    Tool { what: "chromium", tests: "in_chromium", variable: "TOKENRAIL_TEST_CHROMIUM", ready: chromium };

/// It is in front of the server in some of the tests with a browser.
pub(crate) const NGINX: Tool =
    Tool { what: "nginx", tests: "behind_nginx", variable: "TOKENRAIL_TEST_NGINX", ready: nginx };

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
    /// Returns the path of the program. Fetches it if it is missing. The error says why it is not available.
    pub(crate) fn ready(&self) -> Result<PathBuf, Failure> {
        (self.ready)()
    }
}

fn chromium() -> Result<PathBuf, Failure> {
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
    system::program("chromium", &names)
}

fn strace() -> Result<PathBuf, Failure> {
    system::program("strace", &["strace"])
}

fn nginx() -> Result<PathBuf, Failure> {
    let usual = PathBuf::from("/usr/sbin/nginx");
    // Its folder is often not on the path of users.
    if usual.is_file() { Ok(usual) } else { system::program("nginx-light", &["nginx"]) }
}

fn slowhttptest() -> Result<PathBuf, Failure> {
    system::program("slowhttptest", &["slowhttptest"])
}

fn schemathesis() -> Result<PathBuf, Failure> {
    of_python(SCHEMATHESIS)
}

fn kosoku() -> Result<PathBuf, Failure> {
    of_python(KOSOKU)
}

/// Installs the package into an environment of its own, so that nothing on this machine changes.
fn of_python(package: &str) -> Result<PathBuf, Failure> {
    let name = package.split('=').next().unwrap_or_default();
    let folder = workspace::target().join(name);
    python::environment(&folder, package)?;
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::new(format!("{package} was installed, but is missing")))
}
