//! Runs the parts of the tests beside each other, as far as they get on: most of them wait for most of their time.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::tally::Outcome;

/// How many parts run at a time, besides one that computes. Many use both processors of a small machine at times.
const LANES: usize = 2;

/// Which company a part can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Company {
    /// It mostly waits. Those that take longest begin first, so that all end at about the same time.
    Others { about_s: u64 },
    /// It has much to do in time, as a browser has: what only computes may run beside it.
    Quiet,
    /// It only computes, at a low priority: it gets what the others leave.
    Idle,
    /// What it asks of the machine is part of the test: nothing runs beside it.
    Alone,
}

/// One row of the table, before it has run.
pub(super) struct Part<'a> {
    pub(super) what: &'static str,
    pub(super) company: Company,
    pub(super) run: Box<dyn FnOnce(&mut Log) -> Outcome + Send + 'a>,
}

/// One row of the table.
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// What a part prints: line by line if nothing runs beside it, else all of it when it has ended.
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
    pub(super) fn new(
        what: &'static str,
        company: Company,
        run: impl FnOnce(&mut Log) -> Outcome + Send + 'a,
    ) -> Self {
        Self { what, company, run: Box::new(run) }
    }

    fn ended(self, mut log: Log) -> Row {
        let begun = Instant::now();
        let outcome = (self.run)(&mut log);
        let took = begun.elapsed();
        if let Log::Held(text) = log {
            // One call for all of it: nothing of another part comes between.
            print!("==> {} has ended after {} s:\n{text}", self.what, took.as_secs());
        }
        Row { what: self.what, outcome, took }
    }
}

/// Runs all parts, and gives their rows in the same order.
pub(super) fn run(parts: Vec<Part<'_>>) -> Vec<Row> {
    let (mut beside, mut quiet, mut idle, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for numbered in parts.into_iter().enumerate() {
        match numbered.1.company {
            Company::Others { about_s } => beside.push((about_s, numbered)),
            Company::Quiet => quiet.push(numbered),
            Company::Idle => idle.push(numbered),
            Company::Alone => alone.push(numbered),
        }
    }
    // The queues are emptied from their ends.
    quiet.reverse();
    idle.reverse();
    beside.reverse();
    beside.sort_by_key(|(about_s, _)| *about_s);
    let beside = Mutex::new(beside.into_iter().map(|(_, part)| part).collect());
    let (quiet, idle, rows) = (Mutex::new(quiet), Mutex::new(idle), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        scope.spawn(|| lane(&idle, &rows));
        lane(&quiet, &rows);
        for _ in 0..LANES {
            scope.spawn(|| lane(&beside, &rows));
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.extend(alone.into_iter().map(|(number, part)| (number, part.ended(Log::Open))));
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

type Queue<'a> = Mutex<Vec<(usize, Part<'a>)>>;

fn lane(queue: &Queue<'_>, rows: &Mutex<Vec<(usize, Row)>>) {
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop());
    while let Some((number, part)) = next() {
        let row = part.ended(Log::Held(String::new()));
        if let Ok(mut rows) = rows.lock() {
            rows.push((number, row));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn passed(_: &mut Log) -> Outcome {
        Outcome::Passed { tests: 1 }
    }

    #[test]
    fn rows_are_in_the_order_of_the_parts_whatever_ends_first() {
        let others = |about_s| Company::Others { about_s };
        let parts = vec![
            Part::new("alone", Company::Alone, passed),
            Part::new("short", others(1), passed),
            Part::new("computing", Company::Idle, passed),
            Part::new("quiet", Company::Quiet, passed),
            Part::new("long", others(9), |_| Outcome::NotRun { reason: "why not".into() }),
        ];
        let rows = run(parts);
        let order: Vec<_> = rows.iter().map(|row| row.what).collect();
        assert_eq!(order, ["alone", "short", "computing", "quiet", "long"]);
        assert_eq!(rows[4].outcome, Outcome::NotRun { reason: "why not".into() });
    }

    #[test]
    fn two_that_wait_and_one_that_computes_run_at_once_and_what_is_alone_comes_after_them() {
        let (gate, order) = (Barrier::new(LANES + 1), Mutex::new(Vec::new()));
        let meet = |company| {
            Part::new("meets", company, |log: &mut Log| {
                gate.wait();
                order.lock().unwrap().push("met");
                passed(log)
            })
        };
        let alone = Part::new("alone", Company::Alone, |log| {
            assert!(matches!(log, Log::Open), "nobody else speaks");
            order.lock().unwrap().push("alone");
            passed(log)
        });
        let others = Company::Others { about_s: 0 };
        run(vec![alone, meet(others), meet(Company::Idle), meet(others)]);
        assert_eq!(*order.lock().unwrap(), ["met", "met", "met", "alone"]);
    }

    #[test]
    fn only_what_computes_runs_beside_what_needs_quiet() {
        let (gate, order) = (Barrier::new(2), Mutex::new(Vec::new()));
        let meet = |what, company| {
            Part::new(what, company, |log: &mut Log| {
                gate.wait();
                order.lock().unwrap().push("met");
                passed(log)
            })
        };
        let other = Part::new("other", Company::Others { about_s: 9 }, |log| {
            order.lock().unwrap().push("other");
            passed(log)
        });
        run(vec![other, meet("quiet", Company::Quiet), meet("computing", Company::Idle)]);
        let order = order.into_inner().unwrap();
        assert_eq!(order.iter().filter(|what| **what == "met").count(), 2);
        assert_ne!(order[0], "other", "it waits for the quiet one");
    }

    #[test]
    fn what_takes_long_begins_first_and_else_the_order_is_kept() {
        let begun = Mutex::new(Vec::new());
        let first = Barrier::new(LANES);
        let note = |what, about_s, meets: bool| {
            let (begun, first) = (&begun, &first);
            Part::new(what, Company::Others { about_s }, move |log| {
                begun.lock().unwrap().push(what);
                if meets {
                    first.wait();
                }
                passed(log)
            })
        };
        run(vec![note("c", 0, false), note("a", 7, true), note("d", 0, false), note("b", 5, true)]);
        let begun = begun.into_inner().unwrap();
        let mut pair = [begun[0], begun[1]];
        pair.sort_unstable();
        assert_eq!(pair, ["a", "b"]);
    }
}
