//! Reads what test programs report, and derives the outcome of a part of the tests.

use std::process::Command;

use super::lanes::{Log, PART_LIMIT};
use super::outcome::Outcome;
use crate::process;

/// Runs Rust test programs, and counts the tests that ran.
pub(super) fn counted(what: &str, tests: &mut Command, log: &mut Log) -> Outcome {
    watched(what, tests, log, Tally::see)
}

/// Like [`counted`], for vitest.
pub(super) fn counted_by_vitest(what: &str, tests: &mut Command, log: &mut Log) -> Outcome {
    watched(what, tests, log, Tally::see_vitest)
}

fn watched(what: &str, tests: &mut Command, log: &mut Log, see: fn(&mut Tally, &str)) -> Outcome {
    let mut tally = Tally::default();
    let status = process::watched(PART_LIMIT, what, tests, |line| {
        log.line(line);
        see(&mut tally, line);
    });
    match status {
        Ok(status) => tally.outcome(status.success()),
        Err(failure) => Outcome::Failed { reason: failure.to_string() },
    }
}

/// The sums of what the test programs reported in their last lines.
#[derive(Default)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Counts a line like `test result: ok. 3 passed; 0 failed; 0 ignored; …`, and nothing else.
    pub(super) fn see(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = rest.split_once(". ") else { return };
        for count in counts.split("; ") {
            match count.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// Like [`Tally::see`], for vitest: a line like `Tests  1 failed | 57 passed | 1 skipped (59)`.
    pub(super) fn see_vitest(&mut self, line: &str) {
        let Some(rest) = line.trim_start().strip_prefix("Tests ") else { return };
        let counts = rest.split_once('(').map_or(rest, |(counts, _)| counts);
        for count in counts.split('|') {
            match count.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "skipped" | "todo")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    /// A part in which no test ran is no success. Otherwise a filter that matches nothing would look like one.
    pub(super) fn outcome(&self, success: bool) -> Outcome {
        let Self { passed, failed, ignored } = *self;
        if !success {
            return Outcome::Failed { reason: format!("{failed} of {}", passed + failed) };
        }
        match (passed, ignored) {
            (0, _) => Outcome::NotRun { reason: "no such test".to_owned() },
            (_, 0) => Outcome::Passed { tests: passed },
            _ => Outcome::Failed { reason: format!("{ignored} ignored, but no test may be ignored") },
        }
    }
}
