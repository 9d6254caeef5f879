//! Why a use case was refused.

use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::{CwdNotAllowed, FolderError, StoreError, is_disk_full};

/// Why a use case was refused: one variant for each thing that a client does differently.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("there is no such agent: {0}")]
    NotFound(AgentId),
    /// With the names of those that are configured.
    #[error("no agent type {name:?} is configured, but {known}")]
    UnknownType { name: String, known: String },
    #[error("the type of the agent is missing, and no default type is configured")]
    TypeMissing,
    #[error(transparent)]
    CwdNotAllowed(#[from] CwdNotAllowed),
    #[error("the cursor is ahead of the newest event, which is {head}")]
    CursorAhead { head: Sequence },
    #[error("the agent has been deleted")]
    Deleted,
    #[error("the agent is a copy, and nobody can talk with it")]
    ReadOnly,
    #[error("none of the turns of the agent has ended")]
    Active,
    #[error("as many turns as may wait are waiting")]
    QueueFull,
    #[error("as many agents as may wait for a place are waiting")]
    AtCapacity,
    #[error("the idempotency key was used for something else")]
    KeyReused,
    #[error("the agent has asked no question {0}")]
    QuestionUnknown(String),
    #[error("the question {0} is not open any more")]
    QuestionSettled(String),
    #[error("the question has other options: {known}")]
    OptionUnknown { known: String },
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FolderError> for Refusal {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NotAllowed(error) => Self::CwdNotAllowed(error),
            // The folder is where the store is: to a client it is all one.
            FolderError::NotMade(error) if is_disk_full(&error) => Self::Store(StoreError::Full),
            FolderError::NotMade(error) => Self::Store(StoreError::Unavailable(Box::new(error))),
        }
    }
}
