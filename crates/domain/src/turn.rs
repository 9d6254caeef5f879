//! One user prompt and everything that follows until the agent's result.

use crate::{AgentId, CommitId, PromptImage, Sequence, Timestamp, TurnNumber};

/// One user prompt and everything that follows until the agent's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub agent: AgentId,
    pub number: TurnNumber,
    /// The turn for which the runner was asked for this output: this turn itself, unless the agent began this turn by
    /// itself. The process may be older, because it may have been idle since an earlier turn. Stored with the turn.
    pub run: TurnNumber,
    pub prompt: String,
    /// The images of the prompt, in order. If the agent is a replay, the store has them only with the original.
    pub images: Vec<PromptImage>,
    pub state: TurnState,
    pub asked_at: Timestamp,
    /// The sequence of its user message. `None` until the turn has started.
    pub first_sequence: Option<Sequence>,
    /// The sequence of its result. `None` until the turn has ended.
    pub last_sequence: Option<Sequence>,
    /// The number of bytes of the agent's output that are in the journal.
    pub spool_offset: u64,
    /// Why the turn was asked to stop, if it was. It is set before the agent is told to stop, and kept until the turn
    /// has ended.
    pub stop: Option<StopReason>,
    /// The commit that HEAD named when the turn started, if its folder was in a git repository.
    pub base: Option<CommitId>,
}

impl Turn {
    /// A new turn that waits for its start. The store gives it its number.
    pub fn queued(agent: AgentId, prompt: String, now: Timestamp) -> Self {
        Self {
            agent,
            number: TurnNumber::FIRST,
            run: TurnNumber::FIRST,
            prompt,
            images: Vec::new(),
            state: TurnState::Queued,
            asked_at: now,
            first_sequence: None,
            last_sequence: None,
            spool_offset: 0,
            stop: None,
            base: None,
        }
    }

    /// Whether the agent began this turn by itself. Then it has no prompt.
    pub fn is_own(&self) -> bool {
        self.run != self.number
    }
}

/// Why a turn was asked to stop. It is stored with the turn, so that a server that takes over the turn finishes the
/// stop and reaches the same outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A user or a client cancelled the turn.
    Cancelled,
    /// The turn exceeded its time limit.
    TurnTimeout,
    /// The agent was silent for too long.
    IdleTimeout,
    /// The agent was silent for too long in the middle of a message.
    StreamTimeout,
    /// The agent's process kept running after its result.
    AfterResult,
    /// The run exceeded its output limit.
    SpoolBytes,
    /// The text of the open messages exceeded its limit.
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

    /// The name of the reason in the database and the logs.
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

/// The lifecycle state of a turn. It only moves down this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// The turn waits for the previous turn, or for a slot among the running agents.
    Queued,
    Running,
    Ended(TurnOutcome),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnOutcome {
    Completed,
    Failed,
    /// The turn was cancelled on request.
    Cancelled,
    /// The server and the supervisor died, and the agent's output does not contain its result.
    Interrupted,
}

impl TurnOutcome {
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// The name of the outcome in the API, the database and the logs.
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
}
