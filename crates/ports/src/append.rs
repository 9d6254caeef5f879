//! What is appended to a journal.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Event, Sequence, SessionId, Turn};

/// The number of an ownership of an agent's journal. Only the owner appends, and every append names its ownership. Each
/// new ownership has a higher number, so a former owner's append changes nothing, however late it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The ownership of the server that creates the agent.
    pub const FIRST: Self = Self(1);
}

/// What one transaction adds to a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    pub agent: AgentId,
    /// The ownership under which this is written: see [`IAgentRepository::claim`](crate::IAgentRepository::claim).
    pub epoch: Epoch,
    /// Not empty, consecutive, and all of one turn: see [`rules::is_well_formed`](crate::rules::is_well_formed). Only
    /// the last one can be a [`TurnResult`](tokenrail_domain::TurnResult), and then `step` is [`TurnStep::End`].
    pub events: Arc<[Event]>,
    pub step: TurnStep,
    /// The number of bytes of the agent's output that are in the journal after this append.
    pub spool_offset: u64,
    /// The agent program's own conversation id, if it has become known or has changed.
    pub session: Option<SessionId>,
    /// The sequence of the oldest delta of any message that is open after these events.
    pub open_from: Option<Sequence>,
    /// The append that follows in the same transaction. If an agent continues with another turn, the end of the first
    /// turn and the start of the second are saved together, so that the run always belongs to a turn.
    pub then: Option<Box<Self>>,
}

impl Append {
    /// Makes one append of several; `None` if there are none.
    pub fn chain(appends: Vec<Self>) -> Option<Self> {
        appends.into_iter().rev().fold(None, |then, append| Some(Self { then: then.map(Box::new), ..append }))
    }

    /// This append, and those that follow in the same transaction.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |append| append.then.as_deref())
    }
}

/// What an append does to its turn and to the agent's status.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// The turn starts, and the agent becomes `running`. The turn is a queued one, or one that the agent started by
    /// itself and that is new to the store.
    Start(Box<Turn>),
    Continue,
    /// The turn ends as its result says, and so does the agent. If another turn is queued, the agent becomes
    /// `initializing` again.
    End,
}
