//! Reads what test programs report, and derives the outcome of a part of the tests.

use std::process::Command;

use super::lanes::{Log, TESTS_LIMIT};
use super::outcome::{Outcome, failed};
use crate::{Failure, process};

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
    let status = process::watched(TESTS_LIMIT, what, tests, |line| {
        log.line(line);
        see(&mut tally, line);
    });
    match status {
        Ok(status) => tally.outcome(status.success()),
        Err(failure) => tally.cut_off(&failure),
    }
}

/// How many tests that failed are shown with their words, and how many lines of each: the first ones, and as many from
/// where it panics.
const SHOWN: usize = 20;
const LINES_OF_EACH: usize = 12;

/// The sums of what the test programs reported in their last lines, and what the tests said that failed.
#[derive(Default)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    said: Vec<String>,
    /// How many more lines belong to the last of them.
    more_lines: usize,
    /// The tests that have run for over a minute and have not ended.
    slow: Vec<String>,
}

impl Tally {
    /// Counts a line like `test result: ok. 3 passed; 0 failed; 0 ignored; …`, and keeps what stands below a line
    /// like `---- name stdout ----`.
    pub(super) fn see(&mut self, line: &str) {
        self.time(line);
        self.listen(line, line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")));
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

    /// Like [`Tally::see`], for vitest: a line like `Tests  1 failed | 57 passed | 1 skipped (59)`, and what stands
    /// below a line like ` FAIL  file > name`.
    pub(super) fn see_vitest(&mut self, line: &str) {
        self.listen(line, line.strip_prefix(" FAIL  "));
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

    /// Keeps the names in lines like `test name has been running for over 60 seconds` until `test name ... ok`.
    fn time(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test ") else { return };
        if let Some((name, _)) = rest.split_once(" has been running for over ") {
            self.slow.push(name.to_owned());
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            self.slow.retain(|slow| slow != name);
        }
    }

    /// The outcome of tests that were killed, with the names of those that may hang.
    pub(super) fn cut_off(mut self, failure: &Failure) -> Outcome {
        self.said.extend(self.slow.into_iter().map(|name| format!("{name} had not ended")));
        Outcome::Failed { reason: failure.to_string(), said: self.said }
    }

    /// Keeps the line if it names a test that failed, or stands closely below one that does.
    fn listen(&mut self, line: &str, name: Option<&str>) {
        let last = match name {
            Some(name) if self.said.len() < SHOWN => {
                self.more_lines = LINES_OF_EACH;
                self.said.push(name.to_owned());
                return;
            }
            // A backtrace is long, and stands in the log.
            _ if name.is_some() || line == "stack backtrace:" => None,
            _ => self.said.last_mut(),
        };
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.more_lines = LINES_OF_EACH;
        }
        match last {
            None => self.more_lines = 0,
            Some(last) if self.more_lines > 0 && !line.is_empty() => {
                last.extend(["\n    ", line]);
                self.more_lines -= 1;
            }
            Some(_) => {}
        }
    }

    /// A part in which no test ran is no success. Otherwise a filter that matches nothing would look like one.
    pub(super) fn outcome(&self, success: bool) -> Outcome {
        if !success {
            let reason = format!("{} of {}", self.failed, self.passed + self.failed);
            return Outcome::Failed { reason, said: self.said.clone() };
        }
        match (self.passed, self.ignored) {
            (0, _) => Outcome::NotRun { reason: "no such test".to_owned() },
            (passed, 0) => Outcome::Passed { tests: passed },
            (_, ignored) => failed(format!("{ignored} ignored, but no test may be ignored")),
        }
    }
}
