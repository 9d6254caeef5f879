//! Why a store could not do what it was asked to do.

use tokenrail_domain::{AgentId, Sequence};

/// The outcome of a call of a store.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a store could not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no such agent: {0}")]
    UnknownAgent(AgentId),
    /// There are two writers, or there is a bug. The caller must stop writing.
    #[error("the events do not directly follow the latest saved event ({head})")]
    Conflict { head: Sequence },
    /// The agent has another owner, or this node owns it anew. The caller must stop its run and must not announce
    /// anything.
    #[error("another server has taken over this agent")]
    Fenced,
    /// A newer program has changed the database. The caller must stop.
    #[error(
        "a newer version has changed the database: it requires schema {required}, but this program supports schemas up to \
         {known}; install the newer version"
    )]
    Outdated { required: i32, known: i32 },
    #[error("the database is busy")]
    Busy,
    #[error("the disk is full")]
    Full,
    /// The write may or may not have been saved. To find out, append it again.
    #[error("it is unknown whether the write was saved")]
    OutcomeUnknown(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the database is corrupt: {0}")]
    Corrupt(String),
    /// The server of the database cannot be reached now, or does not answer. Nothing was changed.
    #[error("the database server cannot be reached or does not answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server of the database is not the one that was used before, and must not be used. Nothing was changed.
    #[error("the database server is a former primary, or is not the one that was used before")]
    WrongServer(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the database is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy
            | Self::Full
            | Self::OutcomeUnknown(_)
            | Self::Unreachable(_)
            | Self::WrongServer(_)
            | Self::Unavailable(_) => true,
            Self::UnknownAgent(_)
            | Self::Conflict { .. }
            | Self::Fenced
            | Self::Outdated { .. }
            | Self::Corrupt(_) => false,
        }
    }
}
