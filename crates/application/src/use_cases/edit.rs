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
                self.core.tell_edited(id, agent.status, self.core.now());
                Ok(*agent)
            }
            Edited::Deleted => Err(Refusal::Deleted),
            Edited::UnknownAgent => Err(Refusal::NotFound(id)),
        }
    }

    /// Puts an archived agent back into the lists, because it needs its user. Retries while the store fails.
    pub(crate) fn unarchive_in_background(&self, id: AgentId) {
        let service = self.clone();
        let unarchive = async move { service.unarchive_patiently(id).await };
        self.core.tracker.spawn_on(unarchive, &self.core.runtime);
    }

    async fn unarchive_patiently(&self, id: AgentId) {
        let mut pause = self.core.limits.saving.retry_pause;
        while let Err(refusal) = self.unarchive(id).await {
            let again = matches!(&refusal, Refusal::Store(error) if error.is_transient());
            tracing::warn!(
                agent = %id, again, error = &refusal as &dyn std::error::Error,
                "cannot put an archived agent that asks for permission back into the lists"
            );
            match self.core.pause(pause).await {
                Some(longer) if again => pause = longer,
                _ => return,
            }
        }
    }

    async fn unarchive(&self, id: AgentId) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        if agent.archived && agent.deleted_at.is_none() {
            self.do_edit(id, AgentEdit { archived: Some(false), ..AgentEdit::default() }).await?;
        }
        Ok(())
    }
}
