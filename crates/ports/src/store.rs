//! The store: agents and their journals.

mod agent_filter;
mod deletion;
mod error;
mod list_page;
mod standing;

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, ImageFile, ListedAgent, Sequence, StopReason, Timestamp, Turn, TurnId,
    TurnNumber,
};

use crate::{Append, Epoch, Idempotency, NewTurn, Recalled};

pub use agent_filter::{AgentFilter, ArchivedFilter};
pub use deletion::Deletion;
pub use error::{StoreError, StoreResult};
pub use list_page::{ListBounds, ListPage, TurnList};
pub use standing::{Standing, TouchMark, Touched};

/// The append-only journals, one for each agent.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IJournal: Send + Sync {
    /// Saves consecutive events of one turn, with the changes that they cause, in one transaction. The transaction also
    /// contains the appends that follow ([`Append::then`]). Either all of it is saved, or nothing. A permission request
    /// also puts an archived agent back into the lists ([`needs_user`](crate::rules::needs_user)).
    ///
    /// On `Ok` the events are durable, and every later read returns them. On an error the caller must not show them to
    /// anyone. Saving an identical append again returns `Ok` and changes nothing. In this way, a caller finds out what
    /// became of an append that failed with [`StoreError::OutcomeUnknown`].
    ///
    /// # Errors
    /// [`StoreError::UnknownAgent`]; [`StoreError::Fenced`] if the append's epoch is not the agent's;
    /// [`StoreError::Conflict`] if the events do not follow the agent's newest one and differ from those that were
    /// saved under their numbers; any other error of a store.
    async fn append(&self, append: Append) -> StoreResult<()>;

    /// Returns the events after `after`, consecutive and in order: as many as fit into `limit`, but at least one if
    /// there is one.
    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<Vec<Event>>;

    /// Like [`IJournal::read`], for several agents at once: those of each agent after its number, consecutive and in
    /// order. `limit` holds for all of them together, so an agent may be left out, but not all of them if one has
    /// events. An agent that is unknown or has nothing new is left out too.
    async fn read_many(
        &self,
        wanted: Vec<(AgentId, Sequence)>,
        limit: PageLimit,
    ) -> StoreResult<Vec<(AgentId, Vec<Event>)>>;

    /// Returns the events after `after` that a conversation shows: all events except deltas, and the deltas of open
    /// messages. The page is one consistent view of the store.
    async fn messages(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<MessagePage>;

    /// Rewrites the batches of one ended turn that can be packed more tightly. Reads return the same as before. Events
    /// that are rewritten meanwhile stay rewritten: see [`IArchive::rewrite`]. Returns false if no turn is left to
    /// compact.
    async fn compact_next(&self) -> StoreResult<bool>;
}

/// The agents and their turns.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IAgentRepository: Send + Sync {
    /// Saves a new agent with its first turn, which is queued, its images, and the idempotency key. If the key is
    /// known, or the conversation already has an agent, nothing is saved, and the answer says so.
    ///
    /// This node becomes its home and its owner, unless [`Agent::home`] is another node, or
    /// [`NodeId::ANY`](tokenrail_domain::NodeId::ANY): then nobody owns it yet, and it has no folder. A store that
    /// cannot be shared ignores that.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if this node would own the agent, but was declared lost, has left, or if another process
    /// has joined as this node: nobody would run the turn.
    async fn create(&self, agent: Agent, turn: NewTurn, key: Option<Idempotency>) -> StoreResult<Created>;

    /// Saves a new agent that has nothing to do yet. Its first turn comes with [`IAgentRepository::enqueue`]. Its
    /// status is that of an ended agent, and its turn is 0.
    async fn create_idle(&self, agent: Agent) -> StoreResult<()>;

    /// When the newest key was used. The time of keys continues from there when the server starts.
    async fn newest_key(&self) -> StoreResult<Option<Timestamp>>;

    /// What a key was used for, if it is known: the answer to a repeated command.
    async fn recall(&self, key: Idempotency) -> StoreResult<Option<Recalled>>;

    /// Saves one more turn as queued, with its images, under the next number. At most `limit` turns can be queued,
    /// and as many more that were cancelled and wait for their end ([`is_queue_full`](crate::rules::is_queue_full)). An
    /// agent that has ended becomes `initializing`. An archived one is archived no more.
    async fn enqueue(&self, turn: NewTurn, limit: u32, key: Option<Idempotency>) -> StoreResult<Enqueued>;

    /// The agent, deleted or not. `None` if it is unknown or purged.
    async fn get(&self, id: AgentId) -> StoreResult<Option<Agent>>;

    /// Agents, newest first, unless the filter says otherwise. `bounds` limits the memory, however long the fields of
    /// the agents are.
    async fn list(&self, filter: AgentFilter, bounds: ListBounds) -> StoreResult<ListPage<ListedAgent>>;

    /// How far these agents are now, in one consistent view. Agents that are unknown or purged are left out.
    async fn standings(&self, agents: Vec<AgentId>) -> StoreResult<Vec<Standing>>;

    /// The agents that were created, edited, deleted or purged after this mark, or whose turns began, ended, were added
    /// or were stopped: at most `limit`, those first that changed first. Without a mark, no agents, and the mark of
    /// this moment. An agent may be returned again, because the clocks of a store are not exact.
    async fn touched(&self, after: Option<TouchMark>, limit: usize) -> StoreResult<Touched>;

    /// Makes this node the owner of an agent's journal, and returns the epoch of the ownership: the same one as long as
    /// this node stays the owner, else a higher one than ever before. `None` if another node owns the agent, if this
    /// node is fenced, or if the agent is unknown or purged.
    ///
    /// The node that creates an agent owns it, and is its home.
    async fn claim(&self, agent: AgentId) -> StoreResult<Option<Epoch>>;

    /// The running turn and the queued turns, in order.
    async fn open_turns(&self, agent: AgentId) -> StoreResult<Vec<Turn>>;

    /// The agent with its first open turn. The agent may be newer than the turn, not older. `None` if the agent has no
    /// open turn, or is unknown or purged.
    async fn next_turn(&self, agent: AgentId) -> StoreResult<Option<(Agent, Turn)>>;

    /// The highest turn number in use, whether that turn is queued, running or ended.
    async fn last_turn(&self, agent: AgentId) -> StoreResult<TurnNumber>;

    /// Complete turns of any state after `after`, by number: as many as fit into `limit`, but at least one if there is
    /// one.
    async fn turns(&self, agent: AgentId, after: TurnNumber, limit: TurnLimit) -> StoreResult<Vec<Turn>>;

    /// Turns of one agent, of any state, as shown in lists.
    async fn list_turns(&self, id: AgentId, range: TurnRange, bounds: ListBounds) -> StoreResult<TurnList>;

    /// Turns of all agents that are not deleted, or of some of them, in the order in which they were saved: the newest
    /// first, unless the filter says otherwise.
    async fn all_turns(&self, filter: TurnFilter, bounds: ListBounds) -> StoreResult<TurnList>;

    /// The turn to which the event `sequence` belongs. `None` if there is no such event.
    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> StoreResult<Option<Turn>>;

    /// One image of a turn's prompt, by its position from 0. `None` if there is no such image.
    async fn prompt_image(&self, turn: TurnId, position: u32) -> StoreResult<Option<ImageFile>>;

    /// The agent of a client's conversation, if there is one that is not deleted.
    async fn by_chat(&self, chat: String) -> StoreResult<Option<Agent>>;

    /// Every agent with an open turn that this node owns, or that nobody owns and whose home is this node. The oldest
    /// is first. Fields have at most `field_bytes`. A starting server must resume them.
    async fn with_open_turns(&self, field_bytes: usize) -> StoreResult<Vec<ListedAgent>>;

    /// Marks every open turn as cancelled, unless it is already being stopped. The running turn is then stopped, and
    /// queued turns end without having run. They no longer count as queued. Returns the number of turns that this call
    /// marked.
    async fn cancel(&self, agent: AgentId, at: Timestamp) -> StoreResult<u32>;

    /// Changes the name of an agent that is not deleted, or its place in lists. Does not change `updated_at`, which
    /// says when the agent last did something.
    async fn edit(&self, agent: AgentId, edit: AgentEdit) -> StoreResult<Edited>;

    /// Saves why an open turn is being stopped. The first reason stays. Returns the reason that is saved now; `None` if
    /// the turn has ended or does not exist.
    async fn stop_turn(&self, turn: TurnId, reason: StopReason) -> StoreResult<Option<StopReason>>;

    /// Marks the agent as deleted if it is not, and cancels its open turns. [`Deletion::Purge`] also marks it to be
    /// purged. Returns false if the agent is unknown or purged.
    async fn delete(&self, agent: AgentId, at: Timestamp, deletion: Deletion) -> StoreResult<bool>;

    /// The agents of this node that are marked to be purged. A starting server must finish their purges.
    async fn to_purge(&self) -> StoreResult<Vec<AgentId>>;

    /// Removes all rows of an agent. Its id can never be used again. Returns false if the agent is unknown or purged.
    /// If its home is another node, that node removes the files of the agent:
    /// [`Errands::leftovers`](crate::Errands::leftovers).
    async fn purge(&self, agent: AgentId, at: Timestamp) -> StoreResult<bool>;

    /// Whether the store can be read and written now.
    async fn check(&self) -> StoreResult<()>;
}

/// How much to read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    pub events: usize,
    /// The approximate number of bytes of text and raw lines.
    pub bytes: usize,
}

/// How many turns to read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimit {
    pub turns: usize,
    /// The approximate number of bytes of prompts.
    pub bytes: usize,
}

/// One page of the events that a conversation shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessagePage {
    /// In the order of their numbers. Deltas are contained only if their message is open.
    pub events: Vec<Event>,
    /// The page is complete up to this number.
    pub up_to: Sequence,
    /// The sequence of the agent's newest event.
    pub head: Sequence,
}

/// Which turns of one agent to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnRange {
    /// Only those with a higher number.
    pub after: TurnNumber,
    /// Only those with a lower number.
    pub before: Option<TurnNumber>,
    /// Only those with a commit ([`Turn::base`]).
    pub with_base: bool,
    /// The highest number first.
    pub newest_first: bool,
    pub limit: usize,
}

/// How many events before the end of a turn the agent can report why its last message stopped. An earlier report is not
/// shown in [`ListedTurn::stop_reason`]. Agents report it together with that message.
pub const STOP_REASON_EVENTS: u64 = 256;

/// Which turns to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnFilter {
    /// Only turns of these agents. Empty: of all agents.
    pub agents: Vec<AgentId>,
    /// Only queued and running turns.
    pub open: bool,
    /// Only turns that follow this one in the order of the list. No turns if this one does not exist.
    pub behind: Option<(AgentId, TurnNumber)>,
    /// The oldest first.
    pub oldest_first: bool,
    pub limit: usize,
}

/// The outcome of [`IAgentRepository::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    New,
    /// The key was used for the same body. The answer is this agent.
    Again(AgentId),
    /// The key was used for another body.
    KeyReused,
    /// The client's conversation already belongs to this agent.
    ChatTaken(AgentId),
}

/// The outcome of [`IAgentRepository::enqueue`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// The number of the turn, and the number of queued turns, including this one.
    New {
        turn: TurnNumber,
        queued: u32,
        /// The agent was archived, and is no more.
        unarchived: bool,
    },
    /// The key was used for the same body. This was the answer.
    Again {
        turn: TurnNumber,
        queued: u32,
    },
    /// The key was used for another body.
    KeyReused,
    /// The next number is not the one that the turn must get ([`NewTurn::only_as`]).
    OtherNumber,
    /// The maximum number of turns is queued.
    QueueFull,
    UnknownAgent,
}

/// The outcome of [`IAgentRepository::edit`].
#[derive(Debug, Clone, PartialEq)]
pub enum Edited {
    /// The agent as it is now.
    Saved(Box<Agent>),
    Deleted,
    /// The agent is unknown or purged.
    UnknownAgent,
}
