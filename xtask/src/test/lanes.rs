//! The parts of the tests: most run one after the other, and lanes of parts run at the same time.

use std::process::Command;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::outcome::{Outcome, failed};
use crate::process;

/// Tests that take longer hang. The longest part, with PostgreSQL, takes eleven minutes beside the builds of CI on two
/// processors (2026-11-30). A slow machine needs twice as long.
pub(super) const TESTS_LIMIT: Duration = Duration::from_mins(35);

/// A build that yields to all other parts may take as long as these: an hour on a slow machine with two processors
/// (2026-12-01).
const YIELDING_LIMIT: Duration = Duration::from_mins(80);

/// One row of the table, before it has run.
pub(crate) struct Part<'a> {
    pub(super) what: &'static str,
    run: Box<dyn FnOnce(&mut Log) -> Outcome + Send + 'a>,
}

/// One row of the table.
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// How a part prints: line by line, or everything when the part has ended, so that no other output comes between.
pub(super) enum Log {
    Open,
    Held(String),
}

impl Log {
    pub(super) fn line(&mut self, line: &str) {
        match self {
            Self::Open => println!("{line}"),
            Self::Held(text) => text.extend([line, "\n"]),
        }
    }
}

impl<'a> Part<'a> {
    pub(super) fn new(what: &'static str, run: impl FnOnce(&mut Log) -> Outcome + Send + 'a) -> Self {
        Self { what, run: Box::new(run) }
    }

    /// Commands at the lowest priority, one after the other, which all must succeed. They must not build into the
    /// folder of the tests, because cargo locks a folder while it builds there.
    pub(crate) fn yielding(what: &'static str, commands: Vec<Command>) -> Self {
        Self::new(what, move |log| {
            let reason = commands.iter().find_map(|command| {
                let mut command = process::yielding(command);
                match process::watched(YIELDING_LIMIT, what, &mut command, |line| log.line(line)) {
                    Ok(status) if status.success() => None,
                    Ok(status) => Some(status.to_string()),
                    Err(failure) => Some(failure.to_string()),
                }
            });
            reason.map_or(Outcome::Done, failed)
        })
    }

    fn ended(self, mut log: Log) -> Row {
        let begun = Instant::now();
        let outcome = (self.run)(&mut log);
        let took = begun.elapsed();
        if let Log::Held(text) = log {
            print!("==> {} ended after {} s:\n{text}", self.what, took.as_secs());
        }
        Row { what: self.what, outcome, took }
    }
}

/// Runs these parts one after the other, and at the same time each of the lanes in `beside`. Returns their rows, those
/// of the lanes last.
pub(super) fn run<'a>(parts: Vec<Part<'a>>, beside: Vec<Vec<Part<'a>>>) -> Vec<Row> {
    thread::scope(|scope| {
        let beside: Vec<_> = beside.into_iter().map(|lane| begin(scope, lane)).collect();
        let mut rows: Vec<_> = parts.into_iter().map(|part| part.ended(Log::Open)).collect();
        rows.extend(beside.into_iter().flat_map(finish));
        rows
    })
}

fn begin<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    lane: Vec<Part<'a>>,
) -> ScopedJoinHandle<'scope, Vec<Row>> {
    scope.spawn(move || lane.into_iter().map(|part| part.ended(Log::Held(String::new()))).collect())
}

fn finish(lane: ScopedJoinHandle<'_, Vec<Row>>) -> Vec<Row> {
    lane.join().unwrap_or_else(|_| {
        let outcome = failed("it panicked");
        vec![Row { what: "beside", outcome, took: Duration::ZERO }]
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn yielding(scripts: &[&str]) -> Row {
        let shell = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        Part::yielding("it", scripts.iter().map(shell).collect()).ended(Log::Open)
    }

    #[test]
    fn all_commands_must_succeed_and_the_first_that_fails_is_the_last() {
        assert_eq!(yielding(&["true", "true"]).outcome, Outcome::Done);
        let third = yielding(&["exit 3", "exit 4"]);
        assert_eq!(third.outcome, failed("exit status: 3"));
    }

    #[test]
    fn what_runs_beside_runs_at_the_same_time_and_its_rows_come_last() {
        let met = Barrier::new(3);
        let meets = |what| {
            Part::new(what, |log: &mut Log| {
                met.wait();
                log.line("met");
                Outcome::Passed { tests: 1 }
            })
        };
        let rows = run(vec![meets("here")], vec![vec![meets("first")], vec![meets("second")]]);
        assert_eq!(rows.iter().map(|row| row.what).collect::<Vec<_>>(), ["here", "first", "second"]);
    }

    #[test]
    fn a_lane_that_panics_has_failed() {
        let rows = run(Vec::new(), vec![vec![Part::new("it", |_| panic!("as the test wants"))]]);
        assert!(matches!(rows[0].outcome, Outcome::Failed { .. }));
    }
}
