//! What a test sees of the memory store, without hesitation.

use tokenrail_domain::{Agent, AgentId, Event, Turn, TurnNumber};

use super::MemoryStore;
use super::shelf::Shelf;
use crate::Epoch;

impl MemoryStore {
    /// The events of an agent that are saved at this moment, without hesitation.
    pub fn saved(&self, agent: AgentId) -> Vec<Event> {
        self.saved_after(agent, 0)
    }

    /// Like [`MemoryStore::saved`], without the first `known` events.
    pub fn saved_after(&self, agent: AgentId, known: usize) -> Vec<Event> {
        let after = |shelf: &Shelf| shelf.events.get(known..).unwrap_or_default().to_vec();
        self.lock().shelves.get(&agent).map(after).unwrap_or_default()
    }

    /// The agent as it is saved at this moment, without hesitation.
    pub fn saved_agent(&self, agent: AgentId) -> Option<Agent> {
        self.lock().shelves.get(&agent).map(|shelf| shelf.agent.clone())
    }

    /// Whether an agent is to be purged, without hesitation.
    pub fn is_saved_to_purge(&self, agent: AgentId) -> bool {
        self.lock().shelves.get(&agent).is_some_and(|shelf| shelf.to_purge)
    }

    /// The epoch of an agent's latest ownership, without hesitation.
    pub fn saved_epoch(&self, agent: AgentId) -> Option<Epoch> {
        self.lock().shelves.get(&agent).map(|shelf| shelf.epoch)
    }

    /// Stores a session as an older version of the server may have stored it.
    pub fn set_session(&self, agent: AgentId, session: &str) {
        if let Some(shelf) = self.lock().shelves.get_mut(&agent) {
            shelf.agent.session = Some(session.to_owned());
        }
    }

    /// All turns of an agent as they are saved at this moment, without hesitation.
    pub fn saved_turns(&self, agent: AgentId) -> Vec<Turn> {
        self.lock().shelves.get(&agent).map(|shelf| shelf.turns(TurnNumber::default())).unwrap_or_default()
    }
}
