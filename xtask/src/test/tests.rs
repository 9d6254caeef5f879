use std::time::Duration;

use super::tally::Tally;
use super::*;

fn tally(lines: &[&str]) -> Tally {
    let mut tally = Tally::default();
    for line in lines {
        tally.see(line);
    }
    tally
}

fn row(outcome: Outcome) -> Row {
    Row { what: "rust tests", outcome, took: Duration::from_secs(12) }
}

#[test]
fn the_counts_of_all_test_programs_are_added() {
    let tally = tally(&[
        "running 2 tests",
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s",
        "test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
        "it said: test result: ok. 5 passed; 0 failed",
    ]);
    assert_eq!(tally.outcome(true), Outcome::Passed { tests: 42 });
}

#[test]
fn the_counts_of_vitest_are_read_too() {
    let mut tally = Tally::default();
    tally.see_vitest(" Test Files  7 passed (7)");
    tally.see_vitest("      Tests  58 passed (58)");
    assert_eq!(tally.outcome(true), Outcome::Passed { tests: 58 });
    tally.see_vitest("      Tests  1 failed | 2 passed | 1 skipped (4)");
    assert_eq!(tally.outcome(false), failed("1 of 61"));
    assert!(matches!(tally.outcome(true), Outcome::Failed { .. }), "one is skipped");
}

#[test]
fn a_failure_is_never_a_success() {
    let red = tally(&["test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured"]);
    assert_eq!(red.outcome(false), failed("1 of 3"));
    let crashed = tally(&["test result: ok. 2 passed; 0 failed; 0 ignored"]);
    assert_eq!(crashed.outcome(false), failed("0 of 2"));
}

#[test]
fn a_filter_that_fits_nothing_and_an_ignored_test_are_no_success() {
    let none = tally(&["test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out"]);
    assert_eq!(none.outcome(true), Outcome::NotRun { reason: "no such test".into() });
    let ignored = tally(&["test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured"]);
    assert_eq!(ignored.outcome(true), failed("1 ignored, but no test may be ignored"));
}

#[test]
fn what_did_not_run_is_a_failure_where_everything_must_run() {
    let rows = [
        row(Outcome::Passed { tests: 1 }),
        Row {
            what: "claude CLI",
            outcome: Outcome::NotRun { reason: "npm is missing".into() },
            took: Duration::ZERO,
        },
    ];
    assert!(verdict(&rows, false).is_ok());
    assert_eq!(verdict(&rows, true).unwrap_err().to_string(), "claude CLI did not run");
    assert_eq!(
        table(&rows),
        "what           | seconds | result\nrust tests     |      12 | passed (1)\n\
         claude CLI     |       0 | NOT RUN (npm is missing)"
    );
}

#[test]
fn a_run_without_any_test_is_a_failure_everywhere() {
    let rows = [row(Outcome::NotRun { reason: "no such test".into() })];
    assert_eq!(verdict(&rows, false).unwrap_err().to_string(), "no tests ran");
}

#[test]
fn what_a_failed_test_said_stands_below_the_table() {
    let tally = tally(&[
        "test a::works ... ok",
        "test a::fails ... FAILED",
        "",
        "failures:",
        "",
        "---- a::fails stdout ----",
        "",
        "thread 'a::fails' (17) panicked at tests/a.rs:1:9:",
        "it is red",
        "stack backtrace:",
        "   0: somewhere",
        "",
        "failures:",
        "    a::fails",
        "",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured",
    ]);
    let rows = [row(tally.outcome(false))];
    assert_eq!(
        failures(&rows),
        "\nrust tests: a::fails\n    thread 'a::fails' (17) panicked at tests/a.rs:1:9:\n    it is red\n"
    );
    assert!(table(&rows).ends_with("FAILED (1 of 2)"));
}

#[test]
fn tests_that_had_not_ended_are_named_if_the_part_is_killed() {
    let tally = tally(&[
        "test a::slow has been running for over 60 seconds",
        "test a::hangs has been running for over 60 seconds",
        "test a::slow ... ok",
    ]);
    let outcome = tally.cut_off(&Failure::new("rust tests: timed out after 2100 s"));
    assert_eq!(failures(&[row(outcome)]), "\nrust tests: a::hangs had not ended\n");
}

#[test]
fn why_a_test_panicked_is_shown_below_the_first_lines_of_all_it_said() {
    let said: Vec<String> = (1..=100).map(|number| format!("step {number}")).collect();
    let mut lines = vec!["---- a::fails stdout ----"];
    lines.extend(said.iter().map(String::as_str));
    lines.extend(["thread 'a::fails' (17) panicked at tests/a.rs:1:9:", "it is red", "stack backtrace:"]);
    lines.push("test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured");
    let shown = failures(&[row(tally(&lines).outcome(false))]);
    assert!(shown.contains("step 1\n") && !shown.contains("step 50"), "{shown}");
    assert!(shown.ends_with("panicked at tests/a.rs:1:9:\n    it is red\n"), "{shown}");
}

#[test]
fn what_a_failed_test_of_vitest_said_stands_there_too() {
    let mut tally = Tally::default();
    for line in
        [" FAIL  test/a.test.ts > fails", "AssertionError: expected 1 to be 2", " Test Files  1 failed (1)"]
    {
        tally.see_vitest(line);
    }
    let Outcome::Failed { said, .. } = tally.outcome(false) else { panic!("it failed") };
    assert!(
        said[0].starts_with("test/a.test.ts > fails\n    AssertionError: expected 1 to be 2"),
        "{said:?}"
    );
}
