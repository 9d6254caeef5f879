//! Changes what users may change about an agent at any time: its name, and its place in lists.

use tokenrail_domain::{Agent, AgentEdit, AgentId};
use tokenrail_ports::Edited;

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// Changes an agent that is not deleted, and returns it as it is then. Its journal stays as it is, so an agent that
    /// has ended can be changed too, and so can a copy.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Deleted`], [`Refusal::Store`].
    pub async fn edit(&self, id: AgentId, edit: AgentEdit) -> Result<Agent, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_edit(id, edit).await }).await
    }

    async fn do_edit(&self, id: AgentId, edit: AgentEdit) -> Result<Agent, Refusal> {
        match self.core.outside.agents.edit(id, edit).await? {
            // Also if the agent was like that already: the outcome of an earlier attempt may have been unknown.
            Edited::Saved(agent) => {
                self.core.note_edited(&agent);
                self.core.tell_edited(id, agent.status, self.core.now());
                Ok(*agent)
            }
            Edited::Deleted => Err(Refusal::Deleted),
            Edited::UnknownAgent => Err(Refusal::NotFound(id)),
        }
    }
}
