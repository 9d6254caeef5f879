//! Copies of an agent's history: what may be copied.

use tokenrail_domain::{Agent, AgentId};

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// The agent, if its history is whole: no turn runs, and none waits.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Active`], [`Refusal::Store`].
    pub async fn ended(&self, id: AgentId) -> Result<Agent, Refusal> {
        let agent = self.get(id).await?;
        let open = self.core.outside.agents.open_turns(id).await?;
        if agent.status.is_active() || !open.is_empty() { Err(Refusal::Active) } else { Ok(agent) }
    }
}
