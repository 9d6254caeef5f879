//! Proves that the simulation finds bugs: builds it with planted bugs, and hunts for each of them.

use std::process::Command;

use crate::{Failure, process, workspace};

/// Adds `--cfg planted_bugs` for the crates of this workspace only, so that no other crate is rebuilt. These builds are
/// kept apart from all others.
const WRAPPER: &str = "tests/simulation/rustc-with-planted-bugs";
const TEST: &str = "planted::each_planted_bug_is_found";

/// Checks that the code compiles with the bugs. No other build compiles them.
pub(crate) fn check() -> Command {
    let mut check = cargo();
    check.args(["check", "--workspace", "--locked", "--test", "simulation"]);
    check
}

fn cargo() -> Command {
    let mut cargo = process::cargo();
    cargo.env("RUSTC_WORKSPACE_WRAPPER", workspace::root().join(WRAPPER));
    cargo
}

pub(crate) fn run() -> Result<(), Failure> {
    let mut tests = cargo();
    tests.args([
        "test",
        "--workspace",
        "--locked",
        "--test",
        "simulation",
        "--",
        "--exact",
        TEST,
        "--nocapture",
    ]);
    process::step("hunting for the planted bugs", &mut tests)
}
