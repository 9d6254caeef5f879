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
    },
    NotRun {
        reason: String,
    },
}

pub(super) fn not_run(reason: &Failure) -> Outcome {
    Outcome::NotRun { reason: reason.to_string() }
}
