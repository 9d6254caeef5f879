//! The servers of others beside which this one is measured: `cargo xtask bench --peers`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, npm, system, workspace};

/// By these the benchmark finds them; see `tests/bench/peers.rs`.
const NODE_VARIABLE: &str = "TOKENRAIL_BENCH_NODE";
const NATS_VARIABLE: &str = "TOKENRAIL_BENCH_NATS";

const FILES: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];
/// The only one of the packages that is more than JavaScript.
const COMPILED: &str = "better-sqlite3";
/// What that takes, and the packages of Debian that have it.
const COMPILERS: [(&str, &str); 4] =
    [("node", "nodejs"), ("c++", "g++"), ("make", "make"), ("python3", "python3")];

/// Puts them in place; gives the variables for those that can be had, and says why the others can't.
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

/// Debian puts servers where only administrators have their `PATH`.
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
    // Written last: what broke off is begun again.
    let stamp = to.join("ready");
    if fs::read(&stamp).is_ok_and(|ready| ready == lock) {
        return Ok(to);
    }
    npm::fetch(&to, "the packages of the server for Node", &["ci"])?;
    npm::compile(&to, COMPILED)?;
    fs::write(&stamp, lock).map_err(failed)?;
    Ok(to)
}
