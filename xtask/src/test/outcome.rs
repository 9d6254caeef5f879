//! How a part of the tests went.

use crate::Failure;

/// How one part of the tests went.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Passed {
        tests: u64,
    },
    /// The part succeeded and has no tests.
    Done,
    Failed {
        reason: String,
        /// What each test that failed said first.
        said: Vec<String>,
    },
    NotRun {
        reason: String,
    },
}

pub(super) fn failed(reason: impl Into<String>) -> Outcome {
    Outcome::Failed { reason: reason.into(), said: Vec::new() }
}

pub(super) fn not_run(reason: &Failure) -> Outcome {
    Outcome::NotRun { reason: reason.to_string() }
}
