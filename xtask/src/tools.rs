//! Third-party programs that tests use: a browser, a database, a tracer, testers of HTTP interfaces and of sockets.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, python, system, workspace};

/// Python packages at a known version: a newer one may require more of the server.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const KOSOKU: &str = "kosoku==0.1.0";

/// The programs of PostgreSQL that tests run.
const POSTGRES_PROGRAMS: [&str; 4] = ["postgres", "initdb", "psql", "pg_basebackup"];

/// A program that tests need. They receive its path in `variable`, and those that need it have `tests` in their path.
/// Of PostgreSQL, which is several programs, they receive the folder.
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

/// Tests that need it are in modules of this name.
pub(crate) const POSTGRES: Tool =
    Tool { what: "postgres", tests: "postgres::", variable: "TOKENRAIL_TEST_POSTGRES", ready: postgres };

pub(crate) const TOOLS: [Tool; 10] = [
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
    POSTGRES,
    Tool {
        what: "pgbouncer",
        tests: "behind_pgbouncer",
        variable: "TOKENRAIL_TEST_PGBOUNCER",
        ready: pgbouncer,
    },
    Tool {
        what: "false clocks",
        tests: "with_false_clocks",
        variable: "TOKENRAIL_TEST_FAKETIME",
        ready: libfaketime,
    },
    Tool { what: "namespaces", tests: "between_namespaces", variable: "TOKENRAIL_TEST_IP", ready: ip },
    Tool { what: "two nodes", tests: "two_nodes::", variable: NGINX.variable, ready: nginx_and_postgres },
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

/// The folder of the newest version.
fn postgres() -> Result<PathBuf, Failure> {
    if let Some(folder) = postgres_folder() {
        return Ok(folder);
    }
    system::install_postgres()?;
    postgres_folder()
        .ok_or_else(|| Failure::new("postgresql was installed, but not all of its programs are there"))
}

/// These tests need a database too.
fn pgbouncer() -> Result<PathBuf, Failure> {
    postgres()?;
    let usual = PathBuf::from("/usr/sbin/pgbouncer");
    if usual.is_file() { Ok(usual) } else { system::program("pgbouncer", &["pgbouncer"]) }
}

/// A library that changes the clock of one process. Its tests need a database too.
fn libfaketime() -> Result<PathBuf, Failure> {
    postgres()?;
    if let Some(library) = faketime_library() {
        return Ok(library);
    }
    system::install("libfaketime")?;
    faketime_library()
        .ok_or_else(|| Failure::new("libfaketime was installed, but is not where Debian has it"))
}

fn faketime_library() -> Option<PathBuf> {
    let systems = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = systems.map(|system| system.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file())
}

/// Its tests make network namespaces, with a database in one of them.
fn ip() -> Result<PathBuf, Failure> {
    postgres()?;
    let ip = system::program("iproute2", &["ip"])?;
    let name = format!("tokenrail-xtask-{}", std::process::id());
    let netns = |action: &str| Command::new(&ip).args(["netns", action, &name]).output();
    if system::is_root() && netns("add").is_ok_and(|made| made.status.success()) {
        let _ = netns("delete");
        return Ok(ip);
    }
    Err(Failure::new("only root can make network namespaces, where the system allows them"))
}

/// The page of several servers starts both.
fn nginx_and_postgres() -> Result<PathBuf, Failure> {
    postgres()?;
    nginx()
}

fn postgres_folder() -> Option<PathBuf> {
    // A folder on the path may have only links to a few of the programs.
    let is_complete = |folder: &PathBuf| POSTGRES_PROGRAMS.iter().all(|name| folder.join(name).is_file());
    let named = system::found(&["initdb"]).and_then(|initdb| initdb.parent().map(Path::to_path_buf));
    if let Some(folder) = named.filter(is_complete) {
        return Some(folder);
    }
    // Debian has a folder for each major version, and none of them is on the path.
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin"))).filter(|(_, folder)| is_complete(folder))
    });
    folders.max().map(|(_, folder)| folder)
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
