//! One conversation with one agent program.

use std::fmt;

use crate::{AgentError, AgentId, JsonText, NodeId, Sequence, Timestamp, TurnNumber, TurnOutcome};

/// One conversation with one agent program.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: AgentId,
    /// The configured agent type, for example `claude-code`.
    pub kind: String,
    pub name: Option<String>,
    /// The client's own id of this conversation, by which the client finds the agent again. It is unique among all
    /// agents that are not deleted.
    pub chat: Option<String>,
    pub status: AgentStatus,
    /// The prompt of the first turn.
    pub prompt: String,
    pub model: Option<String>,
    /// The absolute path of the working directory.
    pub cwd: String,
    /// The agent program's own conversation id, as stored. An older server version may have stored a value that is not
    /// a valid [`SessionId`](crate::SessionId).
    pub session: Option<String>,
    /// The latest turn that has started. 1 before the first one has started; 0 without a turn.
    pub turn: TurnNumber,
    /// The number of queued turns.
    pub queued: u32,
    /// The sequence of the latest event.
    pub head: Sequence,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    /// Whether users want to see it before the others.
    pub pinned: bool,
    /// Whether lists leave it out. A message brings it back, and so does a permission request.
    pub archived: bool,
    /// Why the latest turn failed. `None` if it did not fail.
    pub error: Option<AgentError>,
    /// Token usage of the latest turn, as the agent reported it: a JSON object.
    pub usage: Option<JsonText>,
    /// The total cost so far in US dollars, as the agent reported it.
    pub cost_usd: Option<f64>,
    /// The client's own metadata: a JSON object.
    pub metadata: Option<JsonText>,
    /// Launch options for the runner: a JSON object.
    pub options: Option<JsonText>,
    /// If true, the agent is cancelled when the last follower disconnects.
    pub cancel_on_disconnect: bool,
    /// The node that has the agent's folder and its runs. `None` if the store has only one node. The store sets it when
    /// the agent is created.
    pub home: Option<NodeId>,
    /// Where the history was copied from, if the agent is a copy. A copy accepts no messages.
    pub copy: Option<Copied>,
    /// The agent that has launched this one. `None` if no agent has.
    pub launched_by: Option<LaunchedBy>,
}

impl Agent {
    /// A new agent whose first turn is queued. The prompt and the working directory are empty, and optional fields are
    /// absent.
    pub fn new(id: AgentId, kind: String, now: Timestamp) -> Self {
        Self {
            id,
            kind,
            name: None,
            chat: None,
            status: AgentStatus::Initializing,
            prompt: String::new(),
            model: None,
            cwd: String::new(),
            session: None,
            turn: TurnNumber::FIRST,
            queued: 1,
            head: Sequence::START,
            created_at: now,
            updated_at: now,
            ended_at: None,
            deleted_at: None,
            pinned: false,
            archived: false,
            error: None,
            usage: None,
            cost_usd: None,
            metadata: None,
            options: None,
            cancel_on_disconnect: false,
            home: None,
            copy: None,
            launched_by: None,
        }
    }

    /// Whether the agent was launched, and no node has taken it yet. It has no folder then.
    #[must_use]
    pub fn is_unclaimed(&self) -> bool {
        self.home == Some(NodeId::ANY)
    }

    /// Whether this node runs the agent's turns.
    pub fn is_at_home(&self, node: NodeId) -> bool {
        self.home.is_none_or(|home| home == node)
    }
}

/// The agent that has launched another one, and how deep this launch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchedBy {
    pub agent: AgentId,
    /// 1 if no agent has launched `agent`.
    pub depth: u32,
}

impl LaunchedBy {
    /// Of an agent that is launched by `parent`.
    pub fn parent(parent: &Agent) -> Self {
        let depth = parent.launched_by.map_or(0, |above| above.depth);
        Self { agent: parent.id, depth: depth.saturating_add(1) }
    }
}

/// The source of a copied history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Copied {
    /// An exported file.
    File,
    /// Another agent's journal, replayed event by event.
    Replay(Replay),
}

/// The parameters of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    pub of: AgentId,
    /// The last event to replay: the result of a turn.
    pub until: Sequence,
    /// 1 is the original speed, 2 is twice as fast, and 0 is without any delay.
    pub speed: f64,
}

/// `initializing -> running -> completed | failed | cancelled | interrupted`. A new message moves an ended agent back
/// to `initializing`. The start of its turn moves the agent to `running`.
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

    /// The name of the status in the API, the database and the logs.
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

    /// Whether a turn is running or about to run.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Initializing | Self::Running)
    }

    /// Checks one status transition.
    ///
    /// # Errors
    /// [`TransitionError`] if an agent cannot go from `self` to `next`.
    pub fn transition(self, next: Self) -> Result<Self, TransitionError> {
        let legal = match (self, next) {
            // The first turn or a later one starts.
            (from, Self::Running) => from != Self::Running,
            // A turn is queued.
            (from, Self::Initializing) => !from.is_active(),
            (from, _) => from.is_active(),
        };
        if legal { Ok(next) } else { Err(TransitionError { from: self, to: next }) }
    }
}

/// The agent's status after a turn with this outcome.
impl From<TurnOutcome> for AgentStatus {
    fn from(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Completed,
            TurnOutcome::Failed => Self::Failed,
            TurnOutcome::Cancelled => Self::Cancelled,
            TurnOutcome::Interrupted => Self::Interrupted,
        }
    }
}

/// An agent cannot go from one status to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransitionError {
    pub from: AgentStatus,
    pub to: AgentStatus,
}

impl fmt::Display for TransitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an agent cannot change from {} to {}", self.from.as_str(), self.to.as_str())
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
    fn a_grandchild_is_deeper_than_a_child() {
        let agent =
            |number| Agent::new(AgentId::new(Timestamp(1), [number; 10]), "demo".to_owned(), Timestamp(1));
        let first = agent(1);
        let by_first = LaunchedBy::parent(&first);
        assert_eq!(by_first, LaunchedBy { agent: first.id, depth: 1 });
        let second = Agent { launched_by: Some(by_first), ..agent(2) };
        assert_eq!(LaunchedBy::parent(&second), LaunchedBy { agent: second.id, depth: 2 });
    }

    #[test]
    fn names_read_back() {
        for status in AgentStatus::ALL {
            assert_eq!(AgentStatus::from_name(status.as_str()), Some(status));
        }
        assert_eq!(AgentStatus::from_name("Running"), None);
    }
}
