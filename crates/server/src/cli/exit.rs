//! How commands end.

use std::borrow::Cow;
use std::process::ExitCode;

/// How a command ended, and its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Usage,
    Unreachable,
    /// The database needs a newer version of the program.
    Outdated,
    /// The stored data is corrupt.
    Corrupt,
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
            Exit::Unreachable | Exit::Outdated => 3,
            // EX_CONFIG of sysexits.h. It tells service managers that another start does not help.
            Exit::Corrupt => 78,
            Exit::Interrupted => 130,
            Exit::Closed => 141,
        })
    }
}

impl Exit {
    /// The code of an error with this exit, if the error has no code of its own.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unreachable => "unreachable",
            Self::Outdated => "outdated",
            Self::Corrupt => "database_corrupt",
            Self::Interrupted => "interrupted",
            Self::Closed => "output_closed",
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// A stable name of the error, for programs.
    code: Cow<'static, str>,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { exit, code: exit.code().into(), cause: cause.into() }
    }

    /// The same failure with a code of its own.
    pub(crate) fn coded(self, code: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), ..self }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
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
        Self::new(Exit::Failed, cause)
    }
}
