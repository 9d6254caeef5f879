//! How commands end.

use std::process::ExitCode;

/// How a command ended, and its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Usage,
    Unreachable,
    /// The stored data is corrupt.
    Damaged,
    Interrupted,
    /// The reader of the output has gone.
    Closed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Completed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            // EX_CONFIG of sysexits.h. It tells service managers that another start does not help.
            Exit::Damaged => 78,
            Exit::Interrupted => 130,
            Exit::Closed => 141,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { exit, cause: cause.into() }
    }

    pub(crate) fn cause(&self) -> &(dyn std::error::Error + 'static) {
        &*self.cause
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.cause.fmt(f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(cause: E) -> Self {
        Self { exit: Exit::Failed, cause: Box::new(cause) }
    }
}
