//! The simulated store: a memory store acts as the disk, and this adds everything that can go wrong on the way to it.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, Event, ImageFile, ListedAgent, NodeId, Sequence, StopReason, Timestamp, Turn,
    TurnId, TurnNumber,
};
use tokenrail_ports::testing::MemoryStore;
use tokenrail_ports::{
    AgentFilter, Append, Created, Deletion, Edited, Enqueued, Epoch, IAgentRepository, IClock, IJournal,
    Idempotency, ListBounds, ListPage, MessagePage, NewTurn, PageLimit, Recalled, Standing, StoreError,
    StoreResult, TouchMark, Touched, TurnFilter, TurnLimit, TurnList, TurnRange, TurnStep,
};

use crate::bounds;
use crate::nodes::{LateAppend, Place};
use crate::planted_outside;
use crate::world::World;

/// A store that is slow, fails, and sometimes does not know whether it has failed.
pub(crate) struct SimStore(pub(crate) Arc<World>);

impl SimStore {
    pub(crate) async fn write<T>(
        &self,
        what: &'static str,
        write: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let world = &self.0;
        world.step(what).await;
        if world.outage() {
            return Err(StoreError::Unavailable("the disk is gone".into()));
        }
        if world.chance(world.faults.store_error) {
            world.step("not begun").await;
            let which = world.lock().dice.below(3);
            return Err(match which {
                0 => StoreError::Busy,
                1 => StoreError::Full,
                _ => StoreError::Unavailable("input/output error".into()),
            });
        }
        if world.chance(world.faults.commit_unknown) {
            if world.chance(500) {
                world.reach("a commit failed and was not done");
            } else {
                world.reach("a commit failed and was done");
                write.await?;
            }
            world.step("unknown").await;
            return Err(StoreError::OutcomeUnknown("input/output error at commit".into()));
        }
        let done = write.await;
        world.step("committed").await;
        done
    }

    pub(crate) async fn read<T>(
        &self,
        what: &'static str,
        read: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let world = &self.0;
        world.step(what).await;
        if world.outage() || world.chance(world.faults.read_error) {
            return Err(StoreError::Unavailable("input/output error".into()));
        }
        let read = read.await;
        world.step("has read").await;
        read
    }
}

/// An append on its way to the store. If the server is killed, or does not learn the outcome, the append may still
/// arrive: long after the next server has started.
struct Underway<'a> {
    world: &'a World,
    number: u64,
}

impl<'a> Underway<'a> {
    /// Whether it arrives if the server is killed is decided when it begins: a killed server drops its tasks in an
    /// order that depends on what else this process simulates.
    fn new(world: &'a World, append: &Append) -> Self {
        let arrives_late = world.chance(500);
        let mut state = world.lock();
        state.appends_begun += 1;
        let number = state.appends_begun;
        if arrives_late {
            state.underway.insert(number, append.clone());
            world.saving.notify_waiters();
        }
        Self { world, number }
    }

    /// It has arrived, or never will.
    fn settle(&self) {
        self.world.lock().underway.remove(&self.number);
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let mut state = self.world.lock();
        if let Some(late) = state.underway.remove(&self.number) {
            state.late_appends.entry(late.agent).or_default().push(late);
        }
    }
}

impl SimStore {
    async fn save(&self, append: Append) -> StoreResult<()> {
        let sender = self.0.node.as_ref().map(Place::node);
        self.save_of(append, &self.0.disk, sender).await
    }

    /// Saves what `sender` has sent, which sees the store as `disk`.
    async fn save_of(&self, append: Append, disk: &MemoryStore, sender: Option<NodeId>) -> StoreResult<()> {
        let agent = append.agent;
        let current = self.0.disk.saved_epoch(agent).unwrap_or(append.epoch);
        let append = Append { epoch: planted_outside::checked_epoch(append.epoch, current), ..append };
        let last = append.events.last().map_or(0, |event| event.sequence.0);
        let place = self.0.node.as_ref().zip(sender);
        let is_taken = place.is_some_and(|(place, sender)| place.is_owned_by_other(agent, sender));
        let is_new = self.0.disk.saved_agent(agent).is_some_and(|agent| agent.head.0 < last);
        // Not one that ends before it has begun.
        let begun = match &append.step {
            TurnStep::Start(turn) if append.then.is_none() => Some(turn.number),
            TurnStep::Start(_) | TurnStep::Continue | TurnStep::End => None,
        };
        let saved = disk.append(append).await;
        if is_taken && is_new && saved.is_ok() {
            self.0.fail(format!("G28: {last} was saved by a node from which the agent was taken"));
        }
        if let (Some(place), Ok(())) = (&self.0.node, &saved) {
            place.has_saved(agent, last, self.0.now_ms());
            if let Some(turn) = begun {
                place.has_begun(agent, turn);
            }
        }
        // Check the state at the time of the commit, not at the time when the server learns of it.
        self.0.sync(agent);
        saved
    }

    /// Lets the appends arrive that were under way when a server was killed or stopped waiting.
    pub(crate) async fn late_appends_arrive(&self, agent: AgentId) {
        if !self.0.chance(300) {
            return;
        }
        let late = self.0.lock().late_appends.remove(&agent).unwrap_or_default();
        for append in late {
            let what = match self.save(append).await {
                Ok(()) => "a late append was saved, or had been saved",
                Err(StoreError::Fenced) => "a late append of a former server was fenced",
                Err(_) => "a late append was refused",
            };
            self.0.reach(what);
        }
        for LateAppend { append, sender, disk } in
            self.0.node.iter().flat_map(|place| place.take_late(agent)).collect::<Vec<_>>()
        {
            let what = match self.save_of(append, &disk, Some(sender)).await {
                Ok(()) => "a late append of a killed node was saved, or had been saved",
                Err(StoreError::Fenced) => "a late append of a killed node was fenced",
                Err(_) => "a late append of a killed node was refused",
            };
            self.0.reach(what);
        }
    }
}

#[async_trait]
impl IJournal for SimStore {
    async fn append(&self, append: Append) -> StoreResult<()> {
        let (agent, events) = (append.agent, Arc::clone(&append.events));
        let first = events.first().map_or(0, |event| event.sequence.0);
        self.0.check(bounds::pending(&append, &self.0.faults.limits));
        // A node that is stopped puts everything off.
        if !self.0.is_stopped(agent) && self.0.node.is_none() {
            self.0.check(bounds::put_off(&append, self.0.now(), &self.0.faults));
        }
        let failed = self.0.lock().failed_appends.get(&agent).copied().unwrap_or(0);
        let append = planted_outside::again(append, failed);
        self.late_appends_arrive(agent).await;
        let underway = Underway::new(&self.0, &append);
        let save = async {
            underway.settle();
            self.save(append).await
        };
        let done = self.write("append", save).await;
        if !matches!(done, Err(StoreError::OutcomeUnknown(_))) {
            underway.settle();
        }
        drop(underway);
        let mut state = self.0.lock();
        match &done {
            Ok(()) => state.failed_appends.remove(&agent),
            Err(_) => state.failed_appends.insert(agent, failed + 1),
        };
        state.note("appended", first, u64::from(done.is_ok()));
        let now = state.now_ms();
        state.trace.say(now, || format!("{first}: {events:?} -> {done:?}"));
        drop(state);
        if let Err(StoreError::Conflict { head }) = &done {
            self.0.fail(format!("an append of {first} contradicts the journal, whose head is {head}"));
        }
        planted_outside::appended(done)
    }

    async fn read(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<Vec<Event>> {
        self.0.check(bounds::read(limit, &self.0.faults.limits));
        SimStore::read(self, "read", self.0.disk.read(agent, after, limit)).await
    }

    async fn read_many(
        &self,
        wanted: Vec<(AgentId, Sequence)>,
        limit: PageLimit,
    ) -> StoreResult<Vec<(AgentId, Vec<Event>)>> {
        SimStore::read(self, "read many", self.0.disk.read_many(wanted, limit)).await
    }

    async fn messages(&self, agent: AgentId, after: Sequence, limit: PageLimit) -> StoreResult<MessagePage> {
        self.0.check(bounds::read(limit, &self.0.faults.limits));
        SimStore::read(self, "messages", self.0.disk.messages(agent, after, limit)).await
    }

    async fn compact_next(&self) -> StoreResult<bool> {
        self.0.disk.compact_next().await
    }
}

#[async_trait]
impl IAgentRepository for SimStore {
    async fn create(&self, agent: Agent, turn: NewTurn, key: Option<Idempotency>) -> StoreResult<Created> {
        let key = key.and_then(planted_outside::key);
        self.write("create", self.0.disk.create(agent, turn, key)).await
    }

    async fn create_idle(&self, agent: Agent) -> StoreResult<()> {
        self.write("create idle", self.0.disk.create_idle(agent)).await
    }

    async fn enqueue(&self, turn: NewTurn, limit: u32, key: Option<Idempotency>) -> StoreResult<Enqueued> {
        let key = key.and_then(planted_outside::key);
        self.write("enqueue", self.0.disk.enqueue(turn, limit, key)).await
    }

    async fn get(&self, id: AgentId) -> StoreResult<Option<Agent>> {
        SimStore::read(self, "get", self.0.disk.get(id)).await
    }

    async fn list(&self, filter: AgentFilter, bounds: ListBounds) -> StoreResult<ListPage<ListedAgent>> {
        SimStore::read(self, "list", self.0.disk.list(filter, bounds)).await
    }

    async fn claim(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        let claim = async {
            let claimed = self.0.disk.claim(agent).await;
            if let (Some(place), Ok(Some(_))) = (&self.0.node, &claimed) {
                place.owns(agent);
            }
            claimed
        };
        SimStore::read(self, "claim", claim).await
    }

    async fn standings(&self, agents: Vec<AgentId>) -> StoreResult<Vec<Standing>> {
        SimStore::read(self, "standings", self.0.disk.standings(agents)).await
    }

    async fn touched(&self, after: Option<TouchMark>, limit: usize) -> StoreResult<Touched> {
        SimStore::read(self, "touched", self.0.disk.touched(after, limit)).await
    }

    async fn open_turns(&self, agent: AgentId) -> StoreResult<Vec<Turn>> {
        let turns = SimStore::read(self, "open turns", self.0.disk.open_turns(agent)).await?;
        Ok(planted_outside::open_turns(turns))
    }

    async fn next_turn(&self, agent: AgentId) -> StoreResult<Option<(Agent, Turn)>> {
        let next = SimStore::read(self, "next turn", self.0.disk.next_turn(agent)).await?;
        Ok(next.and_then(|(agent, turn)| Some((agent, planted_outside::open_turns(vec![turn]).pop()?))))
    }

    async fn with_open_turns(&self, field_bytes: usize) -> StoreResult<Vec<ListedAgent>> {
        let agents =
            SimStore::read(self, "with open turns", self.0.disk.with_open_turns(field_bytes)).await?;
        Ok(planted_outside::to_recover(agents))
    }

    async fn newest_key(&self) -> StoreResult<Option<Timestamp>> {
        SimStore::read(self, "newest key", self.0.disk.newest_key()).await
    }

    async fn recall(&self, key: Idempotency) -> StoreResult<Option<Recalled>> {
        let Some(key) = planted_outside::key(key) else { return Ok(None) };
        SimStore::read(self, "recall", self.0.disk.recall(key)).await
    }

    async fn last_turn(&self, agent: AgentId) -> StoreResult<TurnNumber> {
        SimStore::read(self, "last turn", self.0.disk.last_turn(agent)).await
    }

    async fn turns(&self, agent: AgentId, after: TurnNumber, limit: TurnLimit) -> StoreResult<Vec<Turn>> {
        SimStore::read(self, "turns", self.0.disk.turns(agent, after, limit)).await
    }

    async fn list_turns(&self, id: AgentId, range: TurnRange, bounds: ListBounds) -> StoreResult<TurnList> {
        SimStore::read(self, "list turns", self.0.disk.list_turns(id, range, bounds)).await
    }

    async fn all_turns(&self, filter: TurnFilter, bounds: ListBounds) -> StoreResult<TurnList> {
        SimStore::read(self, "all turns", self.0.disk.all_turns(filter, bounds)).await
    }

    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> StoreResult<Option<Turn>> {
        SimStore::read(self, "turn at", self.0.disk.turn_at(agent, sequence)).await
    }

    async fn prompt_image(&self, turn: TurnId, position: u32) -> StoreResult<Option<ImageFile>> {
        SimStore::read(self, "prompt image", self.0.disk.prompt_image(turn, position)).await
    }

    async fn by_chat(&self, chat: String) -> StoreResult<Option<Agent>> {
        SimStore::read(self, "by chat", self.0.disk.by_chat(chat)).await
    }

    async fn cancel(&self, agent: AgentId, at: Timestamp) -> StoreResult<u32> {
        if !planted_outside::saves_cancels() {
            return Ok(0);
        }
        self.write("cancel", self.0.disk.cancel(agent, at)).await
    }

    async fn edit(&self, agent: AgentId, edit: AgentEdit) -> StoreResult<Edited> {
        self.write("edit", self.0.disk.edit(agent, edit)).await
    }

    async fn stop_turn(&self, turn: TurnId, reason: StopReason) -> StoreResult<Option<StopReason>> {
        self.write("stop turn", self.0.disk.stop_turn(turn, reason)).await
    }

    async fn to_purge(&self) -> StoreResult<Vec<AgentId>> {
        SimStore::read(self, "to purge", self.0.disk.to_purge()).await
    }

    async fn purge(&self, agent: AgentId, at: Timestamp) -> StoreResult<bool> {
        let purge = async {
            // After the purge nobody can check what was saved, and a page that was read before may be shown later.
            self.0.sync(agent);
            if let (Some(place), Some(_)) = (&self.0.node, self.0.disk.saved_agent(agent)) {
                place.purges(agent, self.0.disk.saved(agent), self.0.now_ms());
            }
            self.0.disk.purge(agent, at).await
        };
        self.write("purge", purge).await
    }

    async fn delete(&self, agent: AgentId, at: Timestamp, deletion: Deletion) -> StoreResult<bool> {
        let delete = async {
            if let Some(place) = &self.0.node {
                place.deletes(agent, deletion);
            }
            self.0.disk.delete(agent, at, deletion).await
        };
        self.write("delete", delete).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.0.disk.check().await
    }
}
