//! What is appended to a journal.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Event, Sequence, SessionId, Turn};

/// What one transaction adds to a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    pub agent: AgentId,
    /// Consecutive, not empty, all of one turn: see [`rules::is_well_formed`](crate::rules::is_well_formed). A [`TurnResult`](tokenrail_domain::TurnResult) only as the last,
    /// and then `step` is [`TurnStep::End`].
    pub events: Arc<[Event]>,
    pub step: TurnStep,
    /// How many bytes of the agent's output these events and those before them account for.
    pub spool_offset: u64,
    /// The agent program's own conversation id, if it has become known or has changed.
    pub session: Option<SessionId>,
    /// The number of the oldest delta of any message that is open after these events.
    pub open_from: Option<Sequence>,
    /// What follows in the same transaction. If an agent goes on with another turn, the end of the first and the
    /// start of the second are saved together, so that the run always belongs to a turn.
    pub then: Option<Box<Self>>,
}

impl Append {
    /// Makes one append of several; `None` if there are none.
    pub fn chain(appends: Vec<Self>) -> Option<Self> {
        appends.into_iter().rev().fold(None, |then, append| Some(Self { then: then.map(Box::new), ..append }))
    }

    /// This append, and what follows in the same transaction.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |append| append.then.as_deref())
    }
}

/// What an append does to its turn and to the agent's status.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// The turn runs from here on, and the agent with it. The turn is a queued one, or one that the agent has
    /// begun by itself and that is new to the store.
    Start(Box<Turn>),
    Continue,
    /// The turn has ended as its result says, and the agent with it. If another turn waits, the agent is
    /// `initializing` again.
    End,
}
