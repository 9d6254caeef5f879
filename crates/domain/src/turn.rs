//! One user prompt and all that follows until the agent's result.

use crate::{AgentId, AgentStatus, Sequence, Timestamp, TurnNumber};

/// One user prompt and all that follows until the agent's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub agent: AgentId,
    pub number: TurnNumber,
    /// The turn that started the process in which this one runs: itself, but for a turn that the agent began by
    /// itself, after the result of an earlier one. To be stored with the turn.
    pub run: TurnNumber,
    pub prompt: String,
    pub state: TurnState,
    pub asked_at: Timestamp,
    /// The number of its user message, once it has started.
    pub first_sequence: Option<Sequence>,
    /// How many bytes of the agent's output are in the journal.
    pub spool_offset: u64,
}

/// Where a turn is in its life: it only ever moves down this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// It waits for the turn before it.
    Queued,
    Running,
    Ended(TurnOutcome),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnOutcome {
    Completed,
    Failed,
    /// Somebody asked for it.
    Cancelled,
    /// Server and supervisor died, and the agent's result was not in what it had printed.
    Interrupted,
}

impl TurnOutcome {
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// The word for it in API, database and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The inverse of [`TurnOutcome::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// The state in which the agent is left.
    pub fn status(self) -> AgentStatus {
        match self {
            Self::Completed => AgentStatus::Completed,
            Self::Failed => AgentStatus::Failed,
            Self::Cancelled => AgentStatus::Cancelled,
            Self::Interrupted => AgentStatus::Interrupted,
        }
    }
}
