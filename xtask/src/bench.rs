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
    let before = revision_of(args)?.map(built_at).transpose()?;
    let programs = what_is_shipped()?;
    let mut bench = Command::new(programs.join("bench"));
    bench.args(args).current_dir(workspace::root()).stdin(Stdio::null());
    bench.envs(peers).envs(postgres.map(|folder| (tools::POSTGRES.variable, folder)));
    bench.env("TOKENRAIL_BENCH_SERVER", programs.join("tokenrail"));
    bench.envs(before.map(|program| ("TOKENRAIL_BENCH_BEFORE", program)));
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

/// The revision after `--before`.
fn revision_of(args: &[String]) -> Result<Option<&str>, Failure> {
    let Some(at) = args.iter().position(|arg| arg == "--before") else { return Ok(None) };
    match args.get(at + 1) {
        Some(revision) if !revision.starts_with('-') => Ok(Some(revision)),
        _ => Err(Failure::new("--before needs a revision")),
    }
}

/// Builds the server of an earlier version in a folder of its own. Returns its program. What was compiled stays in the
/// target folder, so the next call is quicker.
fn built_at(revision: &str) -> Result<PathBuf, Failure> {
    let folder = workspace::target().join("bench-before");
    let (source, target) = (folder.join("source"), folder.join("target"));
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args).current_dir(workspace::root()).stdin(Stdio::null());
        git
    };
    let source_name = source.to_string_lossy();
    // An interrupted run has left it.
    if source.exists() {
        process::step(
            "removing an earlier checkout",
            &mut git(&["worktree", "remove", "--force", &source_name]),
        )?;
    }
    let mut add = git(&["worktree", "add", "--quiet", "--force", "--detach", &source_name, revision]);
    process::step("checking out the earlier version", &mut add)?;
    // That of another version: not every version has one.
    let _ = std::fs::remove_file(target.join("dist/tokenrail-supervisor"));
    let mut build = process::cargo();
    build.args(["build", "--profile", "dist", "--locked", "--bins", "--package", "tokenrail-server"]);
    build.current_dir(&source).env("CARGO_TARGET_DIR", &target);
    let outcome = process::step("building the earlier version", &mut build);
    process::step("removing the checkout", &mut git(&["worktree", "remove", "--force", &source_name]))?;
    outcome.map(|()| target.join("dist/tokenrail"))
}
