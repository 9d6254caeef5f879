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
    /// The number of its result, once it has ended.
    pub last_sequence: Option<Sequence>,
    /// How many bytes of the agent's output are in the journal.
    pub spool_offset: u64,
    /// Why it was asked to stop, if it was: known from before the agent hears of it until the turn has ended.
    pub stop: Option<StopReason>,
}

/// Why a turn was asked to stop. It is kept with the turn, so that a server that takes the turn up finishes the
/// stop, and comes to the same verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Somebody asked for it.
    Cancelled,
    /// The turn has taken too long.
    TurnTimeout,
    /// The agent was silent for too long.
    IdleTimeout,
    /// The agent was silent for too long in the middle of a message.
    StreamTimeout,
    /// The agent lived on after its result.
    AfterResult,
    /// The run printed more than it may.
    SpoolBytes,
    /// The open messages hold more text than they may.
    MessageBytes,
}

impl StopReason {
    pub const ALL: [Self; 7] = [
        Self::Cancelled,
        Self::TurnTimeout,
        Self::IdleTimeout,
        Self::StreamTimeout,
        Self::AfterResult,
        Self::SpoolBytes,
        Self::MessageBytes,
    ];

    /// The word for it in database and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::TurnTimeout => "turn_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::StreamTimeout => "stream_timeout",
            Self::AfterResult => "after_result",
            Self::SpoolBytes => "spool_bytes",
            Self::MessageBytes => "message_bytes",
        }
    }

    /// The inverse of [`StopReason::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
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
