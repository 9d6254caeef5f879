//! Proves that the simulation finds bugs: builds it with bugs in the application, and hunts for each.

use std::process::Command;

use crate::{Failure, process, workspace};

/// Adds `--cfg planted_bugs` for the crates of this workspace only, so that nothing else is built again, and what is
/// built so is kept apart from every other build.
const WRAPPER: &str = "tests/simulation/rustc-with-planted-bugs";
const TEST: &str = "planted::each_planted_bug_is_found";

/// Whether it can be built with the bugs: no other build sees that code.
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
