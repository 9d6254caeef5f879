//! How far agents are, and which have changed.

use tokenrail_domain::{AgentId, Sequence};

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub agent: AgentId,
    /// The sequence of its newest event.
    pub head: Sequence,
    /// A turn runs or waits.
    pub open: bool,
    pub deleted: bool,
}

/// A point in time of the store, for [`IAgentRepository::touched`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TouchMark(pub i64);

/// The agents that have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Each with the mark of its change.
    pub agents: Vec<(AgentId, TouchMark)>,
    /// Where to continue.
    pub mark: TouchMark,
}
