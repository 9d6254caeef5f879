//! Benchmarks, always of the shipped build: the profile `dist`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Failure, peers, process, tools, workspace};

/// The benchmark's own help text, so that nothing must be built to show it.
const HELP: &str = include_str!("../../tests/bench/help.txt");

/// Builds the server and the benchmark, then runs the benchmark, which prints its own report.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let asks = |flag: &str| args.iter().any(|arg| arg == flag);
    if asks("--help") || asks("-h") {
        print!("{HELP}");
        return Ok(());
    }
    let peers = if asks("--peers") { peers::ready() } else { Vec::new() };
    let postgres = if asks("--cluster") { Some(tools::POSTGRES.ready()?) } else { None };
    let programs = what_is_shipped()?;
    let mut bench = Command::new(programs.join("bench"));
    bench.args(args).current_dir(workspace::root()).stdin(Stdio::null());
    bench.envs(peers).envs(postgres.map(|folder| (tools::POSTGRES.variable, folder)));
    bench.env("TOKENRAIL_BENCH_SERVER", programs.join("tokenrail"));
    process::step("bench", &mut bench)
}

/// Builds the server as it is shipped, and the benchmark, in one call. Both then have the same code and share one set
/// of compiled crates. Returns the folder with the programs.
pub(crate) fn what_is_shipped() -> Result<PathBuf, Failure> {
    let packages = ["--package", "tokenrail-server", "--package", "tokenrail-tests"];
    let mut build = process::cargo();
    build.args(["build", "--profile", "dist", "--locked", "--bins"]).args(packages);
    process::step("building the release binaries", &mut build)?;
    Ok(workspace::target().join("dist"))
}
