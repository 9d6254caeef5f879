//! How the memory store imports and rewrites histories.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentId, Copied, Event, EventBody, Sequence, TurnState};

use super::shelf::Shelf;
use super::{MemoryStore, State};
use crate::rules::{self, are_consecutive, may_replace};
use crate::{IArchive, NewTurn, StoreError};

impl State {
    fn imported(&mut self, id: AgentId) -> Result<&mut Shelf, StoreError> {
        let found = self.shelves.get_mut(&id).filter(|it| it.to_purge && it.agent.copy == Some(Copied::File));
        found.ok_or(StoreError::Conflict { head: Sequence::START })
    }
}

#[async_trait]
impl IArchive for MemoryStore {
    async fn begin_import(&self, agent: Agent) -> Result<(), StoreError> {
        self.act(|state| {
            if state.purged.contains(&agent.id) || state.shelves.contains_key(&agent.id) {
                return Err(StoreError::Conflict { head: Sequence::START });
            }
            let home = state.home(self.node);
            state.shelves.insert(agent.id, Shelf::imported(Agent { home, ..agent }));
            Ok(())
        })
        .await
    }

    async fn import_turns(&self, agent: AgentId, turns: Vec<NewTurn>) -> Result<(), StoreError> {
        self.act(|state| state.imported(agent)?.import_turns(turns)).await
    }

    async fn import_events(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError> {
        self.act(|state| state.imported(agent)?.import_events(&events)).await
    }

    async fn finish_import(&self, agent: Agent) -> Result<(), StoreError> {
        self.act(|state| {
            state.touch(agent.id);
            let of = state.imported(agent.id)?;
            let head = of.agent.head;
            if !rules::may_finish_import(&agent, head) {
                return Err(StoreError::Conflict { head });
            }
            of.agent = Agent { deleted_at: None, home: of.agent.home, ..agent };
            of.to_purge = false;
            Ok(())
        })
        .await
    }

    async fn discard_import(&self, agent: AgentId) -> Result<(), StoreError> {
        self.act(|state| {
            if state.imported(agent).is_ok() {
                state.shelves.remove(&agent);
            }
            Ok(())
        })
        .await
    }

    async fn rewrite(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError> {
        self.act(|state| state.shelf_mut(agent)?.rewrite(&events)).await
    }
}

impl Shelf {
    fn imported(mut agent: Agent) -> Self {
        agent.deleted_at = Some(agent.created_at);
        agent.head = Sequence::START;
        Self { to_purge: true, ..Self::new(agent, None) }
    }

    fn import_turns(&mut self, turns: Vec<NewTurn>) -> Result<(), StoreError> {
        let ended = turns.iter().all(|new| matches!(new.turn().state, TurnState::Ended(_)));
        let mut numbers: Vec<_> =
            self.turns.keys().copied().chain(turns.iter().map(|it| it.turn().number)).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        if !ended || numbers.len() < all {
            return Err(StoreError::Conflict { head: self.agent.head });
        }
        for turn in turns {
            self.add(turn);
        }
        Ok(())
    }

    fn import_events(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let conflict = StoreError::Conflict { head: self.agent.head };
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        if first.sequence != self.agent.head.next() {
            return if self.has_exactly(events) { Ok(()) } else { Err(conflict) };
        }
        if !are_consecutive(events) || !self.completes_each_message_once(events) {
            return Err(conflict);
        }
        self.agent.head = last.sequence;
        self.events.extend_from_slice(events);
        Ok(())
    }

    fn rewrite(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let conflict = StoreError::Conflict { head: self.agent.head };
        let Some(first) = events.first() else { return Ok(()) };
        let turn = self.turns.get(&first.turn);
        let ended = turn.is_some_and(|turn| matches!(turn.state, TurnState::Ended(_)));
        let at = usize::try_from(first.sequence.0.saturating_sub(1)).unwrap_or(usize::MAX);
        let stored = self.events.get_mut(at..at.saturating_add(events.len()));
        let stored = stored.filter(|stored| {
            ended
                && are_consecutive(events)
                && stored.iter().zip(events).all(|(stored, new)| may_replace(stored, new))
        });
        let Some(stored) = stored else { return Err(conflict) };
        stored.clone_from_slice(events);
        if let Some((last, EventBody::TurnResult(result))) = events.last().map(|last| (last, &last.body))
            && last.sequence == self.agent.head
            && !self.agent.status.is_active()
        {
            self.agent.error.clone_from(&result.error);
            self.agent.usage.clone_from(&result.usage);
            self.agent.cost_usd = result.cost_usd.or(self.agent.cost_usd);
        }
        Ok(())
    }
}
