//! The store: agents and their journals.

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentId, AgentStatus, Event, ListedAgent, ListedTurn, Sequence, StopReason, Timestamp, Turn,
    TurnNumber,
};

use crate::{Append, Idempotency, Recalled};

/// The append-only journals, one for each agent.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IJournal: Send + Sync {
    /// Saves consecutive events of one turn, and what they change, in one transaction; with them what follows
    /// ([`Append::then`]): all of it or nothing.
    ///
    /// On `Ok` they are durable, and every later read sees them. On an error the caller shows them to nobody.
    /// Saving the very same append again is `Ok` and changes nothing: that is how a caller finds out what
    /// became of one that failed with [`StoreError::OutcomeUnknown`].
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where the events do not follow the agent's newest one and are not the ones that
    /// were saved under their numbers; [`StoreError::UnknownAgent`]; whatever else a store can suffer from.
    async fn append(&self, append: Append) -> Result<(), StoreError>;

    /// The events after `after`, consecutive and in order: as many as fit into `limit`, but at least one if
    /// there is one.
    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit)
    -> Result<Vec<Event>, StoreError>;

    /// What a person sees of the events after `after`: all events but the deltas, and the deltas of messages
    /// that are not complete yet. One consistent view of the store.
    async fn messages(
        &self,
        agent: AgentId,
        after: Sequence,
        limit: PageLimit,
    ) -> Result<MessagePage, StoreError>;

    /// Rewrites the batches of one ended turn that can be packed tighter; nothing that is read changes. Gives
    /// false when no turn is left to do.
    async fn compact_next(&self) -> Result<bool, StoreError>;
}

/// The agents and their turns.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRepository: Send + Sync {
    /// Saves a new agent with its first turn, queued, and the idempotency key with them. Where the key is
    /// known, or the conversation has an agent already, nothing is saved and the answer says so.
    async fn create(&self, agent: Agent, turn: Turn, key: Option<Idempotency>)
    -> Result<Created, StoreError>;

    /// Saves a new agent that has nothing to do yet: its first turn comes by [`IAgentRepository::enqueue`]. Its
    /// status is one of an agent that has ended, its turn is 0.
    async fn create_idle(&self, agent: Agent) -> Result<(), StoreError>;

    /// When the newest key was used: from there the time of keys goes on when the server starts.
    async fn newest_key(&self) -> Result<Option<Timestamp>, StoreError>;

    /// What a key was used for, if it is known: the answer to a command that comes again.
    async fn recall(&self, key: Idempotency) -> Result<Option<Recalled>, StoreError>;

    /// Saves one more turn, queued, and gives it the next number (`turn.number` is not looked at). At most
    /// `queue_max` turns may wait. An agent that has ended is `initializing` by that.
    async fn enqueue(
        &self,
        turn: Turn,
        queue_max: u32,
        key: Option<Idempotency>,
    ) -> Result<Enqueued, StoreError>;

    /// The agent, deleted or not; none where it is unknown or purged.
    async fn get(&self, id: AgentId) -> Result<Option<Agent>, StoreError>;

    /// Agents, newest first, unless the filter says otherwise. Memory is bounded by `bounds`, however long the fields
    /// of the agents are.
    async fn list(
        &self,
        filter: AgentFilter,
        bounds: ListBounds,
    ) -> Result<ListPage<ListedAgent>, StoreError>;

    /// The turn that runs and those that wait, in order.
    async fn open_turns(&self, agent: AgentId) -> Result<Vec<Turn>, StoreError>;

    /// The highest turn number that is taken, by a turn that waits, runs or has ended.
    async fn last_turn(&self, agent: AgentId) -> Result<TurnNumber, StoreError>;

    /// Whole turns of any state after `after`, by number: at most `limit`, and as many as fit into `bytes`, but at
    /// least one if there is one.
    async fn turns(
        &self,
        agent: AgentId,
        after: TurnNumber,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Turn>, StoreError>;

    /// Turns of one agent, of any state, as lists show them.
    async fn list_turns(
        &self,
        agent: AgentId,
        range: TurnRange,
        bounds: ListBounds,
    ) -> Result<ListPage<ListedTurn>, StoreError>;

    /// Turns of all agents that are not deleted, or of some of them, in the order in which they were saved: the newest
    /// first, unless the filter says otherwise.
    async fn all_turns(
        &self,
        filter: TurnFilter,
        bounds: ListBounds,
    ) -> Result<ListPage<ListedTurn>, StoreError>;

    /// The turn to which the event `sequence` belongs; none where there is no such event.
    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> Result<Option<Turn>, StoreError>;

    /// The agent of a client's conversation, if there is one that is not deleted.
    async fn by_chat(&self, chat: String) -> Result<Option<Agent>, StoreError>;

    /// Every agent that has an open turn, oldest first, with fields of at most `field_bytes`: what a starting server
    /// must take up again.
    async fn with_open_turns(&self, field_bytes: usize) -> Result<Vec<ListedAgent>, StoreError>;

    /// Notes of every open turn that it is cancelled, unless it is being stopped already: the one that runs is to
    /// be stopped, and those that wait are to end without having run. They do not count as waiting any more. Gives
    /// how many were noted now.
    async fn cancel(&self, agent: AgentId, at: Timestamp) -> Result<u32, StoreError>;

    /// Saves why an open turn is being stopped. The first reason stays. Returns the reason that is saved now; `None` if the
    /// turn has ended or does not exist.
    async fn stop_turn(
        &self,
        agent: AgentId,
        turn: TurnNumber,
        reason: StopReason,
    ) -> Result<Option<StopReason>, StoreError>;

    /// Marks the agent as deleted, at the first call, and cancels its open turns; with `purge` it is also marked to
    /// be purged. Gives false where it is unknown or purged.
    async fn delete(&self, agent: AgentId, at: Timestamp, purge: bool) -> Result<bool, StoreError>;

    /// The agents that are marked to be purged: what a starting server must finish.
    async fn to_purge(&self) -> Result<Vec<AgentId>, StoreError>;

    /// Removes all rows of an agent; its id can never be used again. Gives false where it is unknown or purged.
    async fn purge(&self, agent: AgentId, at: Timestamp) -> Result<bool, StoreError>;

    /// Whether the store can be read and written now.
    async fn check(&self) -> Result<(), StoreError>;
}

/// How much to read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    pub events: usize,
    /// About how many bytes, counting text and raw lines.
    pub bytes: usize,
}

/// One page of what a person sees.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessagePage {
    /// By number; deltas of complete messages are left out.
    pub events: Vec<Event>,
    /// The page is complete up to this number.
    pub up_to: Sequence,
    /// The agent's newest event.
    pub head: Sequence,
}

/// How many bytes one page of a list may have, and how many of them a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    /// About how many; a page has at least one item if there is one.
    pub bytes: usize,
    /// What is longer is cut: see [`ListedAgent`] and [`ListedTurn`].
    pub field_bytes: usize,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Whether there are more behind the last one.
    pub more: bool,
}

impl<T> ListPage<T> {
    /// Takes as many items as the limits allow, and looks whether there is one more.
    ///
    /// # Errors
    /// The first of `items`.
    pub fn of<E>(
        items: impl IntoIterator<Item = Result<T, E>>,
        (limit, bytes): (usize, usize),
        size: impl Fn(&T) -> usize,
    ) -> Result<Self, E> {
        let (mut page, mut taken) = (Vec::new(), 0);
        for item in items {
            let item = item?;
            taken += size(&item);
            if limit <= page.len() || bytes < taken && !page.is_empty() {
                return Ok(Self { items: page, more: true });
            }
            page.push(item);
        }
        Ok(Self { items: page, more: false })
    }
}

/// Which agents to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentFilter {
    /// Any of these; empty: all.
    pub statuses: Vec<AgentStatus>,
    pub kind: Option<String>,
    pub name: Option<String>,
    /// Only agents launched before this one.
    pub before: Option<AgentId>,
    /// Only agents launched after this one.
    pub after: Option<AgentId>,
    /// The oldest first.
    pub oldest_first: bool,
    /// Deleted agents instead of the others.
    pub deleted: bool,
    pub limit: usize,
}

/// Which turns of one agent to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnRange {
    /// Only those with a higher number.
    pub after: TurnNumber,
    /// Only those with a lower number.
    pub before: Option<TurnNumber>,
    /// The highest number first.
    pub newest_first: bool,
    pub limit: usize,
}

/// How many events before the end of a turn its agent may say why its last message stops, to be found in
/// [`ListedTurn::stop_reason`]. Agents say it with that message.
pub const STOP_REASON_EVENTS: u64 = 256;

/// Which turns to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnFilter {
    /// Only those of these agents; empty: of all.
    pub agents: Vec<AgentId>,
    /// Only those that wait or run.
    pub open: bool,
    /// Only what comes behind this turn in the order of the list; nothing where there is no such turn.
    pub behind: Option<(AgentId, TurnNumber)>,
    /// The oldest first.
    pub oldest_first: bool,
    pub limit: usize,
}

/// What came of [`IAgentRepository::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    New,
    /// The key was used for the same body: that agent is the answer.
    Again(AgentId),
    /// The key was used for another body.
    KeyReused,
    /// The client's conversation belongs to this agent already.
    ChatTaken(AgentId),
}

/// What came of [`IAgentRepository::enqueue`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// Its number, and how many turns wait now, this one included.
    New {
        turn: TurnNumber,
        queued: u32,
    },
    /// The key was used for the same body: this is what it gave.
    Again {
        turn: TurnNumber,
        queued: u32,
    },
    /// The key was used for another body.
    KeyReused,
    /// No more may wait.
    QueueFull,
    UnknownAgent,
}

/// What a store can suffer from.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no such agent: {0}")]
    UnknownAgent(AgentId),
    /// Two writers, or a bug: whoever gets it must stop writing.
    #[error("the events do not continue after the latest one ({head})")]
    Conflict { head: Sequence },
    #[error("the database is busy")]
    Busy,
    #[error("the disk is full")]
    Full,
    /// It may have been saved or not: append it again to find out.
    #[error("it is unknown whether the write was saved")]
    OutcomeUnknown(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the database is corrupt: {0}")]
    Corrupt(String),
    #[error("the database is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy | Self::Full | Self::OutcomeUnknown(_) | Self::Unavailable(_) => true,
            Self::UnknownAgent(_) | Self::Conflict { .. } | Self::Corrupt(_) => false,
        }
    }
}
