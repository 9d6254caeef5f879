//! A working store in memory. It hesitates, and it fails if a test says so.

mod agents;
mod archive;
mod cluster;
mod credentials;
mod errands;
mod failover;
mod faults;
mod launch_rate;
mod launches;
mod letters;
mod lost_removals;
mod lost_starts;
mod nodes;
mod saved;
mod shelf;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, ListedTurn, NodeId, Sequence, Timestamp, Turn, TurnNumber, TurnState,
};

use self::cluster::Cluster;
use self::credentials::Credentials;
pub use self::failover::LostTail;
pub use self::faults::AppendFault;
use self::shelf::Shelf;
use super::hesitation::Hesitation;
use crate::rules;
use crate::{
    Append, Created, Deletion, Edited, Enqueued, IJournal, Idempotency, KeyLife, ListBounds, ListPage,
    MessagePage, NewTurn, PageLimit, Recalled, StoreError, StoreResult, TurnFilter, TurnList, TurnStep,
};

/// [`IJournal`] and [`IAgentRepository`](crate::IAgentRepository) in memory.
///
/// It hesitates: before and after each change it yields to the scheduler. How often it yields follows from the seed.
/// It can be shared by several nodes: see [`MemoryStore::shared`].
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    node: NodeId,
    /// The incarnation with which this node has joined.
    incarnation: Mutex<u64>,
}

struct State {
    cluster: Cluster,
    shelves: BTreeMap<AgentId, Shelf>,
    purged: BTreeSet<AgentId>,
    keys: BTreeMap<(String, String), UsedKey>,
    credentials: Credentials,
    faults: VecDeque<AppendFault>,
    healthy: bool,
    answer_lost: bool,
    creates_twice: u32,
    /// How many more cancels fail before they do anything.
    cancels_refused: u32,
    /// The same of messages.
    messages_refused: u32,
    /// The same of creations.
    creations_refused: u32,
    /// The same of reads of a journal.
    reads_refused: u32,
    reads_delay: Duration,
    /// The same of nodes that let their agents go.
    leaving_refused: (u32, fn() -> StoreError),
    /// Images cannot be read.
    images_damaged: bool,
    /// How many more appends succeed. `None` for no limit.
    appends_left: Option<u32>,
    hesitation: Hesitation,
}

struct UsedKey {
    body: String,
    agent: AgentId,
    turn: TurnNumber,
    queued: u32,
    used_at: Timestamp,
}

impl MemoryStore {
    /// An empty store whose hesitations follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            node: NodeId::ONLY,
            incarnation: Mutex::new(0),
            state: Arc::new(Mutex::new(State {
                cluster: Cluster::default(),
                shelves: BTreeMap::new(),
                purged: BTreeSet::new(),
                keys: BTreeMap::new(),
                credentials: Credentials::default(),
                faults: VecDeque::new(),
                healthy: true,
                answer_lost: false,
                creates_twice: 0,
                cancels_refused: 0,
                messages_refused: 0,
                creations_refused: 0,
                reads_refused: 0,
                reads_delay: Duration::ZERO,
                leaving_refused: (0, || StoreError::Busy),
                images_damaged: false,
                appends_left: None,
                hesitation: Hesitation::new(seed),
            })),
        }
    }

    /// An empty store that several nodes share, as its first node.
    pub fn shared(seed: u64) -> Self {
        let store = Self::new(seed);
        store.lock().cluster.is_shared = true;
        store
    }

    /// The same store, as another node.
    #[must_use]
    pub fn as_node(&self, node: NodeId) -> Self {
        Self { state: Arc::clone(&self.state), node, incarnation: Mutex::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something at one moment, after a hesitation, and reports it after another one.
    async fn act<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        self.hesitate().await;
        let answer = act(&mut self.lock());
        self.hesitate().await;
        answer
    }

    async fn hesitate(&self) {
        let pause = self.lock().hesitation.pause();
        pause.await;
    }
}

impl State {
    fn shelf(&self, agent: AgentId) -> StoreResult<&Shelf> {
        self.shelves.get(&agent).ok_or(StoreError::UnknownAgent(agent))
    }

    fn shelf_mut(&mut self, agent: AgentId) -> StoreResult<&mut Shelf> {
        self.shelves.get_mut(&agent).ok_or(StoreError::UnknownAgent(agent))
    }

    /// What the key was used for, if it is known.
    fn recall(&mut self, key: Option<&Idempotency>) -> Option<Recalled> {
        let key = key?;
        self.keys.retain(|_, used| key.forget_before <= used.used_at);
        let UsedKey { body, agent, turn, queued, used_at: _ } =
            self.keys.get(&(key.scope.clone(), key.key.clone()))?;
        let recalled = Recalled { same_body: *body == key.body, agent: *agent, turn: *turn, queued: *queued };
        let is_newest = || self.shelves.get(agent).is_some_and(|of| of.newest_is(*turn));
        (key.life == KeyLife::UntilForgotten || is_newest()).then_some(recalled)
    }

    fn remember(&mut self, key: Option<Idempotency>, turn: &Turn, queued: u32) {
        if let Some(key) = key {
            let Idempotency { body, used_at, .. } = &key;
            let (body, used_at) = (body.clone(), *used_at);
            let used = UsedKey { body, agent: turn.agent, turn: turn.number, queued, used_at };
            self.keys.insert((key.scope, key.key), used);
        }
    }

    fn append(&mut self, append: &Append, node: NodeId) -> StoreResult<()> {
        if let Some(left) = &mut self.appends_left {
            *left = left.checked_sub(1).ok_or_else(|| StoreError::Unavailable("told to fail".into()))?;
        }
        let fault = self.faults.pop_front();
        if let Some(AppendFault::BeforeSaving(error)) = fault {
            return Err(error);
        }
        self.shelf_mut(append.agent)?.append(append, node)?;
        if append.parts().any(|part| part.step != TurnStep::Continue) {
            self.touch(append.agent);
        }
        match fault {
            Some(AppendFault::AfterSaving(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn create(
        &mut self,
        agent: Agent,
        turn: NewTurn,
        key: Option<Idempotency>,
        (node, incarnation): (NodeId, u64),
    ) -> StoreResult<Created> {
        if let Some(recalled) = self.recall(key.as_ref()) {
            return Ok(recalled.created());
        }
        self.refuse_taken(agent.id)?;
        if let Some(taken) = agent.chat.as_deref().and_then(|chat| self.by_chat(chat)) {
            return Ok(Created::ChatTaken(taken.id));
        }
        if agent.home.is_none_or(|home| home == node) && self.cluster.is_fenced(node, incarnation) {
            return Err(StoreError::Fenced);
        }
        self.remember(key, turn.turn(), 1);
        self.add(agent, Some(turn), node);
        Ok(Created::New)
    }

    fn refuse_taken(&self, id: AgentId) -> StoreResult<()> {
        if self.purged.contains(&id) || self.shelves.contains_key(&id) {
            return Err(StoreError::Conflict { head: Sequence::START });
        }
        Ok(())
    }

    fn by_chat(&self, chat: &str) -> Option<&Agent> {
        let mut agents = self.shelves.values().map(|shelf| &shelf.agent);
        agents.find(|agent| agent.deleted_at.is_none() && agent.chat.as_deref() == Some(chat))
    }

    /// The memory store keeps no order in which turns were saved. It sorts them by the time of their request.
    fn all_turns(&self, filter: &TurnFilter, bounds: ListBounds) -> StoreResult<TurnList> {
        let TurnFilter { agents, open, behind, oldest_first, limit } = filter;
        let mut turns: Vec<&Turn> = self.shelves.values().flat_map(|shelf| shelf.turns.values()).collect();
        turns.sort_by_key(|turn| (turn.asked_at, turn.agent, turn.number));
        if !oldest_first {
            turns.reverse();
        }
        if let Some(behind) = behind {
            let found = turns.iter().position(|turn| (turn.agent, turn.number) == *behind);
            turns.drain(..found.map_or(turns.len(), |at| at + 1));
        }
        turns.retain(|turn| {
            let listed = self.shelves[&turn.agent].agent.deleted_at.is_none();
            let wanted = agents.is_empty() || agents.contains(&turn.agent);
            listed && wanted && !(*open && matches!(turn.state, TurnState::Ended(_)))
        });
        let turns = turns.into_iter().map(|turn| Ok(self.shelves[&turn.agent].listed(turn, bounds)));
        ListPage::of(turns, (*limit, bounds.bytes), ListedTurn::bytes)
    }

    fn enqueue(&mut self, new: NewTurn, queue_max: u32, key: Option<Idempotency>) -> Enqueued {
        if let Some(recalled) = self.recall(key.as_ref()) {
            return recalled.enqueued();
        }
        let of = self.shelves.get_mut(&new.turn().agent).filter(|of| of.agent.deleted_at.is_none());
        let Some(of) = of else { return Enqueued::UnknownAgent };
        if new.refuses(of.last_turn().next()) {
            return Enqueued::OtherNumber;
        }
        let (mut turn, images) = new.into_parts();
        if rules::is_queue_full(of.agent.queued, of.count_cancelled(), queue_max) {
            return Enqueued::QueueFull;
        }
        turn.number = of.enqueue(turn.clone(), images);
        let queued = of.agent.queued;
        let unarchived = std::mem::take(&mut of.agent.archived);
        self.touch(turn.agent);
        self.remember(key, &turn, queued);
        Enqueued::New { turn: turn.number, queued, unarchived }
    }

    fn edit(&mut self, id: AgentId, edit: AgentEdit) -> Edited {
        self.touch(id);
        match self.shelves.get_mut(&id).map(|of| &mut of.agent) {
            None => Edited::UnknownAgent,
            Some(agent) if agent.deleted_at.is_some() => Edited::Deleted,
            Some(agent) => {
                agent.edit(edit);
                Edited::Saved(Box::new(agent.clone()))
            }
        }
    }

    fn delete(&mut self, id: AgentId, at: Timestamp, deletion: Deletion, node: NodeId) -> bool {
        self.note_delete(id, at, deletion, node);
        self.touch(id);
        let Some(of) = self.shelves.get_mut(&id) else { return false };
        of.cancel(at);
        of.to_purge |= deletion == Deletion::Purge;
        if of.agent.deleted_at.is_none() {
            of.agent.deleted_at = Some(at);
            of.agent.updated_at = of.agent.updated_at.max(at);
        }
        true
    }

    fn purge(&mut self, id: AgentId, node: NodeId) -> bool {
        self.note_purge(id, node);
        self.touch(id);
        let Some(removed) = self.shelves.remove(&id) else { return false };
        self.leave_files(&removed.agent, node);
        self.keys.retain(|_, used| used.agent != id);
        self.purged.insert(id);
        true
    }
}

#[async_trait]
impl IJournal for MemoryStore {
    async fn append(&self, append: Append) -> StoreResult<()> {
        self.act(|state| state.append(&append, self.node)).await
    }

    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<Vec<Event>> {
        self.wait_to_read().await;
        self.act(|state| {
            if 0 < state.reads_refused {
                state.reads_refused -= 1;
                return Err(StoreError::Busy);
            }
            state.shelf(agent).map(|shelf| shelf.read(after, limit))
        })
        .await
    }

    async fn read_many(
        &self,
        wanted: Vec<(AgentId, Sequence)>,
        limit: PageLimit,
    ) -> StoreResult<Vec<(AgentId, Vec<Event>)>> {
        self.act(|state| Ok(state.read_many(&wanted, limit))).await
    }

    async fn messages(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<MessagePage> {
        self.act(|state| state.shelf(agent).map(|shelf| shelf.messages(after, limit))).await
    }

    async fn compact_next(&self) -> StoreResult<bool> {
        self.hesitate().await;
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
