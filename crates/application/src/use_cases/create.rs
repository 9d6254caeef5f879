//! Creates an agent before its first message, for clients whose protocol separates the two.

use tokenrail_domain::{Agent, AgentId, AgentStatus, TurnNumber};

use super::launch::{Launch, may_exist, new_agent};
use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// Saves a new agent without a turn; [`AgentService::send`] adds the first one. The prompt, the idempotency key
    /// and the chat of `launch` are ignored.
    ///
    /// # Errors
    /// [`Refusal`] if the agent was not created. Nothing is left of it then.
    pub async fn create(&self, launch: Launch) -> Result<Agent, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_create(launch).await }).await
    }

    async fn do_create(&self, launch: Launch) -> Result<Agent, Refusal> {
        let (kind, config) = self.agent_type(launch.kind.as_deref())?;
        self.count_launch_unless_stopping().await?;
        let now = self.core.now();
        let id = AgentId::new(now, self.core.outside.random.bytes());
        let cwd = config.workspace.folder(id, launch.cwd.clone()).await?;
        let launch = Launch { prompt: String::new(), chat: None, ..launch };
        let agent = Agent {
            // The agent was asked for nothing yet, so it counts as completed.
            status: AgentStatus::Completed,
            turn: TurnNumber(0),
            queued: 0,
            ..new_agent(id, kind, launch, cwd.to_string_lossy().into_owned(), now)
        };
        let created = self.core.outside.agents.create_idle(agent.clone()).await;
        if created.as_ref().is_err_and(|error| !may_exist(error)) {
            self.remove_folders(id).await;
        }
        created?;
        self.core.tell_created(&agent, now);
        Ok(agent)
    }
}
