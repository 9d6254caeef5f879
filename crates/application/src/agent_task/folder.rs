//! The folder of an agent that another node has saved.

use std::time::Duration;

use tokenrail_domain::{Agent, AgentError, ErrorClass};
use tokenrail_ports::FolderError;
use tokio::time::Instant;

use super::AgentTask;
use crate::core::SaveError;

/// How long a turn waits until an earlier folder of its agent is removed.
const LEFTOVERS_WAIT: Duration = Duration::from_mins(1);

impl AgentTask {
    /// Makes the folder of an agent that has none: it was launched at another node, or has left its home. Returns the
    /// error of the turn if the folder cannot be made.
    pub(super) async fn make_missing_folder(
        &self,
        agent: &mut Agent,
    ) -> Result<Result<(), AgentError>, SaveError> {
        if !agent.cwd.is_empty() {
            return Ok(Ok(()));
        }
        // If the type is missing, the turn fails for that reason.
        let Some(kind) = self.agent_type(agent) else { return Ok(Ok(())) };
        if !self.until_leftovers_are_removed().await? {
            tracing::error!(agent = %agent.id, "cannot create the folder of an agent, because its earlier folder is still being removed");
            return Ok(Err(folder_failed()));
        }
        // It may be there already: this server died before that was saved, or a failover has lost it.
        match kind.workspace.folder(agent.id, None).await {
            Ok(folder) => agent.cwd = folder.to_string_lossy().into_owned(),
            Err(error) => return Ok(Err(not_made(agent, &error))),
        }
        self.patiently(|| self.core.outside.nodes.set_folder(agent.id, agent.cwd.clone())).await?;
        Ok(Ok(()))
    }

    /// What is left of an earlier folder of the same agent may just be removed. That looks first whether the agent is
    /// at home here, and it is: so one that begins later removes nothing. Returns false if it takes too long.
    async fn until_leftovers_are_removed(&self) -> Result<bool, SaveError> {
        let until = Instant::now() + LEFTOVERS_WAIT;
        while self.core.leftovers.has(self.agent) {
            if until <= Instant::now() {
                return Ok(false);
            }
            self.core.pause(self.core.limits.saving.retry_pause).await.ok_or(SaveError::Closing)?;
        }
        Ok(true)
    }
}

fn not_made(agent: &Agent, error: &FolderError) -> AgentError {
    tracing::error!(agent = %agent.id, error = error as &dyn std::error::Error, "cannot make the folder of an agent");
    folder_failed()
}

fn folder_failed() -> AgentError {
    let text = "the server could not create a folder for the agent; the cause is in its log";
    AgentError::new(ErrorClass::Process, Some("folder_failed"), text).recoverable()
}
