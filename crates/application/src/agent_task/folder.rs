//! The folder of an agent that another node has saved.

use tokenrail_domain::{Agent, AgentError, ErrorClass};
use tokenrail_ports::FolderError;

use super::AgentTask;
use crate::core::SaveError;

impl AgentTask {
    /// Makes the folder of an agent that has none yet: it was launched at another node. Returns the error of the turn
    /// if the folder cannot be made.
    pub(super) async fn make_missing_folder(
        &self,
        agent: &mut Agent,
    ) -> Result<Result<(), AgentError>, SaveError> {
        if !agent.cwd.is_empty() {
            return Ok(Ok(()));
        }
        // If the type is missing, the turn fails for that reason.
        let Some(kind) = self.agent_type(agent) else { return Ok(Ok(())) };
        // It may be there already: this server died before that was saved, or a failover has lost it.
        match kind.workspace.folder(agent.id, None).await {
            Ok(folder) => agent.cwd = folder.to_string_lossy().into_owned(),
            Err(error) => return Ok(Err(not_made(agent, &error))),
        }
        self.patiently(|| self.core.outside.nodes.set_folder(agent.id, agent.cwd.clone())).await?;
        Ok(Ok(()))
    }
}

fn not_made(agent: &Agent, error: &FolderError) -> AgentError {
    tracing::error!(agent = %agent.id, error = error as &dyn std::error::Error, "cannot make the folder of an agent");
    let text = "the server could not create a folder for the agent; the cause is in its log";
    AgentError::new(ErrorClass::Process, Some("folder_failed"), text).recoverable()
}
