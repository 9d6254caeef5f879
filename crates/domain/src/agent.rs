//! One conversation with one agent program.

use std::fmt;

use crate::{AgentError, AgentId, JsonText, Sequence, Timestamp, TurnNumber};

/// One conversation with one agent program.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: AgentId,
    /// The configured type it was launched as, for example `claude-code`.
    pub kind: String,
    pub name: Option<String>,
    /// The client's own id of this conversation, by which it finds the agent again. No two agents that are not
    /// deleted have the same.
    pub chat: Option<String>,
    pub status: AgentStatus,
    /// The prompt of its first turn.
    pub prompt: String,
    pub model: Option<String>,
    /// The folder it works in; absolute.
    pub cwd: String,
    /// The agent program's own conversation id, as it was stored: an older version of this server may have taken what is
    /// no [`SessionId`](crate::SessionId).
    pub session: Option<String>,
    /// The newest turn that has started.
    pub turn: TurnNumber,
    /// How many turns wait.
    pub queued: u32,
    /// The number of its newest event.
    pub head: Sequence,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    /// Why the newest turn failed, if it did.
    pub error: Option<AgentError>,
    /// Token usage of the newest turn, as the agent gave it: a JSON object.
    pub usage: Option<JsonText>,
    /// What the agent says that it has cost so far, in US dollars.
    pub cost_usd: Option<f64>,
    /// The client's own notes: a JSON object.
    pub metadata: Option<JsonText>,
    /// Options of the launch, for the runner: a JSON object.
    pub options: Option<JsonText>,
    /// The client asked for a cancel when the last follower leaves.
    pub cancel_on_disconnect: bool,
    /// Where its history was copied from, if it is a copy: nobody can talk with it then.
    pub copy: Option<Copied>,
}

/// Where the history of an agent was copied from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Copied {
    /// An exported file.
    File,
    /// Another agent's journal, event by event.
    Replay(Replay),
}

/// What is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    pub of: AgentId,
    /// The last event of it that is replayed: the result of a turn.
    pub until: Sequence,
    /// 1 is as it was, 2 twice as fast; 0 is as fast as it goes.
    pub speed: f64,
}

/// `initializing -> running -> completed | failed | cancelled | interrupted`; a new message takes an ended agent
/// back to `initializing`, and its turn to `running`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentStatus {
    Initializing,
    Running,
    Completed,
    Failed,
    Cancelled,
    Interrupted,
}

impl AgentStatus {
    pub const ALL: [Self; 6] = [
        Self::Initializing,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// The word for it in API, database and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The inverse of [`AgentStatus::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether a turn runs or is about to.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Initializing | Self::Running)
    }

    /// Checks one step of an agent's life.
    ///
    /// # Errors
    /// [`TransitionError`] where an agent cannot go from `self` to `next`.
    pub fn transition(self, next: Self) -> Result<Self, TransitionError> {
        let legal = match (self, next) {
            // A turn starts, at first or after an earlier one.
            (from, Self::Running) => from != Self::Running,
            // A turn waits for its place.
            (from, Self::Initializing) => !from.is_active(),
            (from, _) => from.is_active(),
        };
        if legal { Ok(next) } else { Err(TransitionError { from: self, to: next }) }
    }
}

/// An agent cannot go from one state to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransitionError {
    pub from: AgentStatus,
    pub to: AgentStatus,
}

impl fmt::Display for TransitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an agent that is {} cannot become {}", self.from.as_str(), self.to.as_str())
    }
}

impl std::error::Error for TransitionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_ends_once_and_can_run_again() {
        use AgentStatus::{Cancelled, Completed, Failed, Initializing, Interrupted, Running};
        let ended = [Completed, Failed, Cancelled, Interrupted];
        assert!(Initializing.transition(Running).is_ok());
        for end in ended {
            assert!(Running.transition(end).is_ok());
            assert!(Initializing.transition(end).is_ok(), "it can fail before it has started");
            assert!(end.transition(Running).is_ok());
            assert!(end.transition(Initializing).is_ok(), "a message waits for its place");
            for other in ended {
                assert!(end.transition(other).is_err(), "{end:?} is final");
            }
        }
        assert!(Running.transition(Running).is_err());
        assert!(Running.transition(Initializing).is_err());
    }

    #[test]
    fn names_read_back() {
        for status in AgentStatus::ALL {
            assert_eq!(AgentStatus::from_name(status.as_str()), Some(status));
        }
        assert_eq!(AgentStatus::from_name("Running"), None);
    }
}
