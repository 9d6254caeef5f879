//! What happened in a simulation, as a hash, and optionally as text.

use std::fmt::Write as _;

use crate::dice::{fold, hash};

/// How many of the last lines are printed for a failed simulation.
const SHOWN: usize = 300;

/// What happened in a simulation. The same seed must produce the same hash.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) hash: u64,
    record: bool,
    lines: Vec<(u64, String)>,
}

impl Trace {
    pub(crate) fn new(record: bool) -> Self {
        Self { hash: hash(b"tokenrail"), record, lines: Vec::new() }
    }

    pub(crate) fn note(&mut self, at_ms: u64, what: &str, a: u64, b: u64) {
        self.hash = fold(fold(fold(fold(self.hash, hash(what.as_bytes())), at_ms), a), b);
        if self.record {
            self.lines.push((at_ms, format!("{what} {a} {b}")));
        }
    }

    /// Adds a line of text. It does not count for the hash.
    pub(crate) fn say(&mut self, at_ms: u64, text: impl FnOnce() -> String) {
        if self.record {
            self.lines.push((at_ms, text()));
        }
    }

    pub(crate) fn last_lines(&self) -> String {
        let mut out = String::new();
        for (at_ms, line) in &self.lines[self.lines.len().saturating_sub(SHOWN)..] {
            let _ = writeln!(out, "{at_ms:>9} ms  {line}");
        }
        out
    }
}
