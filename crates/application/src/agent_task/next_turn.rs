//! The turn that comes next.

use tokenrail_domain::{Agent, Turn};
use tokenrail_ports::StoreError;

use super::AgentTask;
use crate::core::SaveError;

impl AgentTask {
    pub(super) async fn first_open_turn(&self) -> Result<Option<Turn>, SaveError> {
        let turns = self.patiently(|| self.core.outside.agents.open_turns(self.agent)).await?;
        Ok(turns.into_iter().next())
    }

    /// The agent with its first open turn. On a shared store, this server owns the agent first: otherwise, a server
    /// that ends turns after a takeover could add to the journal after its head was read here.
    pub(super) async fn next_turn(&self) -> Result<Option<(Agent, Turn)>, SaveError> {
        let agents = &self.core.outside.agents;
        let is_owned = !self.core.outside.nodes.is_shared()
            || self.patiently(|| agents.claim(self.agent)).await?.is_some();
        let next = self.patiently(|| agents.next_turn(self.agent)).await?;
        if next.is_some() && !is_owned { Err(SaveError::Refused(StoreError::Fenced)) } else { Ok(next) }
    }

    /// The first waiting turn, unless it was cancelled while it waited for its slot.
    pub(super) async fn next_to_start(&self) -> Result<Option<(Agent, Turn)>, SaveError> {
        Ok(self.next_turn().await?.filter(|(_, turn)| turn.stop.is_none()))
    }
}
