//! Proves that tests find bugs: builds them with planted bugs, and hunts for each of them. The simulation finds those
//! of the application. Tests of the store find those that only a real PostgreSQL shows.

use std::process::Command;

use crate::{Failure, process, workspace};

/// Adds `--cfg planted_bugs` for the crates of this workspace only, so that no other crate is rebuilt. These builds are
/// kept apart from all others.
const WRAPPER: &str = "tests/simulation/rustc-with-planted-bugs";
const TEST: &str = "planted::each_planted_bug_is_found";

/// The bugs of the store on PostgreSQL, each with a test that must fail because of it.
const OF_POSTGRES: [(&str, &str); 5] = [
    ("WarningIsSuccess", "an_append_whose_wait_for_the_standby_ends_early_is_not_acknowledged"),
    ("NoBarrier", "an_append_that_was_saved_before_is_acknowledged_only_if_the_standby_has_it"),
    ("TicketTwice", "a_credential_of_one_node_is_used_once_at_any_node"),
    ("TailReused", "the_highest_number_that_was_shown_is_known_at_every_node"),
    ("GatherSkipsCompacted", "many_agents_read_the_same_before_and_after_compaction"),
];

/// The variable that makes a bug of the store active.
const ACTIVE: &str = "TOKENRAIL_PLANTED_BUG";

/// The exit code of tests that ran and failed.
const TESTS_FAILED: i32 = 101;

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
    process::step("hunting for the planted bugs", &mut tests)?;
    each_bug_of_postgres_is_found()
}

fn each_bug_of_postgres_is_found() -> Result<(), Failure> {
    for (bug, test) in OF_POSTGRES {
        process::step(&format!("{test}, without a bug"), &mut test_of_store(test))?;
        let what = format!("the same test with the planted bug {bug}");
        println!("==> {what}");
        let found = test_of_store(test).env(ACTIVE, bug).output();
        let output = found.map_err(|error| Failure::new(format!("cannot run {what}: {error}")))?;
        let is_found = output.status.code() == Some(TESTS_FAILED)
            && String::from_utf8_lossy(&output.stdout).contains("1 failed");
        if !is_found {
            return Err(Failure::new(format!("{what} does not fail: {}", output.status)));
        }
    }
    Ok(())
}

fn test_of_store(test: &str) -> Command {
    let mut tests = cargo();
    tests.args(["test", "--locked", "--package", "tokenrail-persistence", "--lib", "--", test]);
    tests
}
