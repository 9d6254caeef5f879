//! Third-party servers that are measured for comparison: `cargo xtask bench --peers`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, npm, system, workspace};

/// The benchmark finds them by these variables: see `tests/bench/peers.rs`.
const NODE_VARIABLE: &str = "TOKENRAIL_BENCH_NODE";
const NATS_VARIABLE: &str = "TOKENRAIL_BENCH_NATS";

const FILES: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];
/// The only package that is not pure JavaScript.
const COMPILED: &str = "better-sqlite3";
/// The programs that compile it, and the Debian packages that contain them.
const COMPILERS: [(&str, &str); 4] =
    [("node", "nodejs"), ("c++", "g++"), ("make", "make"), ("python3", "python3")];

/// Prepares the servers. Returns the variables for those that are available, and prints why the others are not.
pub(crate) fn ready() -> Vec<(&'static str, OsString)> {
    let peers = [(NODE_VARIABLE, "Node", node()), (NATS_VARIABLE, "NATS JetStream", nats())];
    let mut found = Vec::new();
    for (variable, name, ready) in peers {
        match ready {
            Ok(path) => found.push((variable, path.into_os_string())),
            Err(failure) => println!("cannot measure {name}: {failure}"),
        }
    }
    found
}

fn nats() -> Result<PathBuf, Failure> {
    let known = || system::found(&["nats-server"]).or_else(|| found_by_administrators("nats-server"));
    if let Some(program) = known() {
        return Ok(program);
    }
    system::install("nats-server")?;
    known().ok_or_else(|| Failure::new("nats-server was installed, but is not on PATH"))
}

/// Debian installs servers into a folder that is only on the `PATH` of administrators.
fn found_by_administrators(name: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/sbin").join(name)).filter(|program| program.is_file())
}

/// The folder of the server for Node, with its packages.
fn node() -> Result<PathBuf, Failure> {
    for (program, package) in COMPILERS {
        if system::found(&[program]).is_none() {
            system::install(package)?;
        }
    }
    let (from, to) =
        (workspace::root().join("tests/bench/peers/node"), workspace::target().join("peers/node"));
    let failed = |error: std::io::Error| Failure::new(format!("cannot write to {}: {error}", to.display()));
    fs::create_dir_all(&to).map_err(failed)?;
    for file in FILES {
        fs::copy(from.join(file), to.join(file)).map_err(failed)?;
    }
    let lock = fs::read(to.join("package-lock.json")).map_err(failed)?;
    // Written last, so that an interrupted preparation is repeated.
    let stamp = to.join("ready");
    if fs::read(&stamp).is_ok_and(|ready| ready == lock) {
        return Ok(to);
    }
    npm::fetch(&to, "the packages of the server for Node", &["ci"])?;
    npm::compile(&to, COMPILED)?;
    fs::write(&stamp, lock).map_err(failed)?;
    Ok(to)
}
