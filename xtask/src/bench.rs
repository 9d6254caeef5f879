//! The measurements, always of what is shipped: the profile `dist`.

use std::process::{Command, Stdio};

use crate::{Failure, process, workspace};

/// Builds the server and the benchmark in one go, so that both are of the same code and share one set of
/// compiled crates, then hands over to the benchmark, which prints its own report.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let packages = ["--package", "tokenrail-server", "--package", "tokenrail-tests"];
    let mut build = process::cargo();
    build.args(["build", "--profile", "dist", "--locked", "--bins"]).args(packages);
    process::step("building what is shipped", &mut build)?;
    let programs = workspace::target().join("dist");
    let mut bench = Command::new(programs.join("bench"));
    bench.args(args).current_dir(workspace::root()).stdin(Stdio::null());
    bench.env("TOKENRAIL_BENCH_SERVER", programs.join("tokenrail"));
    process::step("bench", &mut bench)
}
