//! How the memory store implements [`IAgentRepository`].

use async_trait::async_trait;
use tokenrail_domain::{
    Agent, AgentEdit, AgentId, ImageFile, ListedAgent, ListedTurn, Sequence, StopReason, Timestamp, Turn,
    TurnId, TurnNumber,
};

use super::shelf::{self, Shelf};
use super::{MemoryStore, State};
use crate::{
    AgentFilter, Created, Deletion, Edited, Enqueued, Epoch, IAgentRepository, Idempotency, ListBounds,
    ListPage, NewTurn, Recalled, Standing, StoreError, StoreResult, TouchMark, Touched, TurnFilter,
    TurnLimit, TurnList, TurnRange,
};

#[async_trait]
impl IAgentRepository for MemoryStore {
    async fn create(&self, agent: Agent, turn: NewTurn, key: Option<Idempotency>) -> StoreResult<Created> {
        let may_be_used = key.is_some() || agent.chat.is_some();
        if self.is_creation_refused() || may_be_used && self.lock().is_catching_up() {
            return Err(StoreError::Busy);
        }
        let node = (self.node, self.incarnation());
        if 0 < std::mem::take(&mut self.lock().creates_twice) {
            let (agent, turn, key) = (agent.clone(), turn.clone(), key.clone());
            self.act(|state| state.create(agent, turn, key, node)).await?;
        }
        self.answered(self.act(|state| state.create(agent, turn, key, node)).await)
    }

    async fn create_idle(&self, agent: Agent) -> StoreResult<()> {
        self.act(|state| {
            state.refuse_taken(agent.id)?;
            state.add(Agent { home: None, ..agent }, None, self.node);
            Ok(())
        })
        .await
    }

    async fn newest_key(&self) -> StoreResult<Option<Timestamp>> {
        Ok(self.act(|state| state.keys.values().map(|used| used.used_at).max()).await)
    }

    async fn recall(&self, key: Idempotency) -> StoreResult<Option<Recalled>> {
        Ok(self.act(|state| state.recall(Some(&key))).await)
    }

    async fn enqueue(&self, turn: NewTurn, limit: u32, key: Option<Idempotency>) -> StoreResult<Enqueued> {
        let enqueue = |state: &mut State| {
            if let Some(left) = state.messages_refused.checked_sub(1) {
                state.messages_refused = left;
                return Err(StoreError::Busy);
            }
            if state.is_catching_up() {
                return Err(StoreError::Busy);
            }
            Ok(state.enqueue(turn, limit, key))
        };
        self.answered(self.act(enqueue).await)
    }

    async fn get(&self, id: AgentId) -> StoreResult<Option<Agent>> {
        self.wait_to_read().await;
        self.hesitate().await;
        Ok(self.lock().shelves.get(&id).map(|shelf| shelf.agent.clone()))
    }

    async fn list(&self, filter: AgentFilter, bounds: ListBounds) -> StoreResult<ListPage<ListedAgent>> {
        self.hesitate().await;
        let state = self.lock();
        let agents = state.shelves.values().map(|shelf| &shelf.agent);
        let mut agents: Vec<&Agent> = agents.filter(|agent| shelf::matches(&filter, agent)).collect();
        if !filter.oldest_first {
            agents.reverse();
        }
        let listed = agents.into_iter().map(|agent| Ok(ListedAgent::new(agent.clone(), bounds.field_bytes)));
        ListPage::of(listed, (filter.limit, bounds.bytes), ListedAgent::bytes)
    }

    async fn claim(&self, agent: AgentId) -> StoreResult<Option<Epoch>> {
        let incarnation = self.incarnation();
        let claim = |state: &mut State| {
            if state.cluster.is_shared && state.own(self.node, incarnation).is_err() {
                return None;
            }
            state.claim(agent, self.node)
        };
        Ok(self.act(claim).await)
    }

    async fn standings(&self, agents: Vec<AgentId>) -> StoreResult<Vec<Standing>> {
        let standing = |state: &State, agent| state.shelves.get(&agent).map(Shelf::standing);
        Ok(self.act(|state| agents.into_iter().filter_map(|agent| standing(state, agent)).collect()).await)
    }

    async fn touched(&self, after: Option<TouchMark>, limit: usize) -> StoreResult<Touched> {
        Ok(self.act(|state| state.cluster.touched(after, limit)).await)
    }

    async fn open_turns(&self, agent: AgentId) -> StoreResult<Vec<Turn>> {
        self.hesitate().await;
        Ok(self.lock().shelves.get(&agent).map(Shelf::open_turns).unwrap_or_default())
    }

    async fn next_turn(&self, agent: AgentId) -> StoreResult<Option<(Agent, Turn)>> {
        self.wait_to_read().await;
        self.hesitate().await;
        let next = |it: &Shelf| Some((it.agent.clone(), it.open_turns().into_iter().next()?));
        Ok(self.lock().shelves.get(&agent).and_then(next))
    }

    async fn last_turn(&self, agent: AgentId) -> StoreResult<TurnNumber> {
        self.hesitate().await;
        self.lock().shelf(agent).map(Shelf::last_turn)
    }

    async fn turns(&self, agent: AgentId, after: TurnNumber, limit: TurnLimit) -> StoreResult<Vec<Turn>> {
        self.act(|state| {
            let turns = state.shelves.get(&agent).map_or_else(Vec::new, |it| it.turns(after));
            let size = |turn: &Turn| turn.prompt.len();
            Ok(ListPage::of(turns.into_iter().map(Ok), (limit.turns, limit.bytes), size)?.items)
        })
        .await
    }

    async fn list_turns(&self, id: AgentId, range: TurnRange, bounds: ListBounds) -> StoreResult<TurnList> {
        self.act(|state| {
            let turns = state.shelves.get(&id).map(|it| it.list_turns(&range, bounds));
            let turns = turns.into_iter().flatten().map(Ok);
            ListPage::of(turns, (range.limit, bounds.bytes), ListedTurn::bytes)
        })
        .await
    }

    async fn all_turns(&self, filter: TurnFilter, bounds: ListBounds) -> StoreResult<TurnList> {
        self.act(|state| state.all_turns(&filter, bounds)).await
    }

    async fn turn_at(&self, agent: AgentId, sequence: Sequence) -> StoreResult<Option<Turn>> {
        self.act(|state| Ok(state.shelves.get(&agent).and_then(|it| it.turn_at(sequence)))).await
    }

    async fn prompt_image(&self, turn: TurnId, position: u32) -> StoreResult<Option<ImageFile>> {
        let of_agent = |state: &mut State| {
            if state.images_damaged {
                return Err(StoreError::Corrupt("told to fail".into()));
            }
            Ok(state.shelves.get(&turn.agent).and_then(|it| it.image(turn.number, position)))
        };
        self.act(of_agent).await
    }

    async fn by_chat(&self, chat: String) -> StoreResult<Option<Agent>> {
        self.act(|state| Ok(state.by_chat(&chat).cloned())).await
    }

    async fn with_open_turns(&self, field_bytes: usize) -> StoreResult<Vec<ListedAgent>> {
        self.hesitate().await;
        let state = self.lock();
        let mine = |shelf: &&Shelf| shelf.belongs_to(self.node);
        let open = state.shelves.values().filter(|shelf| !shelf.open_turns().is_empty()).filter(mine);
        Ok(open.map(|shelf| ListedAgent::new(shelf.agent.clone(), field_bytes)).collect())
    }

    async fn cancel(&self, agent: AgentId, at: Timestamp) -> StoreResult<u32> {
        let cancel = |state: &mut State| {
            if let Some(left) = state.cancels_refused.checked_sub(1) {
                state.cancels_refused = left;
                return Err(StoreError::Busy);
            }
            state.touch(agent);
            state.shelf_mut(agent).map(|shelf| shelf.cancel(at))
        };
        self.answered(self.act(cancel).await)
    }

    async fn edit(&self, agent: AgentId, edit: AgentEdit) -> StoreResult<Edited> {
        self.answered(Ok(self.act(|state| state.edit(agent, edit)).await))
    }

    async fn stop_turn(&self, turn: TurnId, reason: StopReason) -> StoreResult<Option<StopReason>> {
        let stop = |state: &mut State| {
            state.touch(turn.agent);
            state.shelf_mut(turn.agent).map(|shelf| shelf.stop_turn(turn.number, reason))
        };
        self.answered(self.act(stop).await)
    }

    async fn delete(&self, id: AgentId, at: Timestamp, deletion: Deletion) -> StoreResult<bool> {
        Ok(self.act(|state| state.delete(id, at, deletion, self.node)).await)
    }

    async fn to_purge(&self) -> StoreResult<Vec<AgentId>> {
        self.hesitate().await;
        let state = self.lock();
        let mine = |shelf: &&Shelf| shelf.to_purge && shelf.agent.is_at_home(self.node);
        let marked = state.shelves.values().filter(mine);
        Ok(marked.map(|shelf| shelf.agent.id).collect())
    }

    async fn purge(&self, id: AgentId, _at: Timestamp) -> StoreResult<bool> {
        Ok(self.act(|state| state.purge(id, self.node)).await)
    }

    async fn check(&self) -> StoreResult<()> {
        self.hesitate().await;
        if self.lock().healthy { Ok(()) } else { Err(StoreError::Unavailable("told to fail".into())) }
    }
}
