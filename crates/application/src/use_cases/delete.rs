//! Deletes agents, and purges what is left of them. Both are saved before they are carried out, so that after a crash
//! the next start finishes them.

use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;

use super::cancel::Wake;
use crate::error::Refusal;
use crate::lifecycle::LifecycleEvent;
use crate::service::AgentService;

impl AgentService {
    /// Stops an agent and removes it from the lists. With `purge`, also removes everything that belongs to it: its
    /// history, the files of its runs, and the folder that was created for it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn delete(&self, id: AgentId, purge: bool) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_delete(id, purge).await }).await
    }

    async fn do_delete(&self, id: AgentId, purge: bool) -> Result<(), Refusal> {
        let now = self.core.now();
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            let deleted = agents.delete(id, now, purge).await?;
            Ok(if deleted { Wake::TaskAndRun } else { Wake::Nobody })
        };
        if self.save_and_signal_stop(&agent, save).await? == Wake::Nobody {
            return Err(Refusal::NotFound(id));
        }
        if !self.until_stopped(id).await {
            // The deletion is saved: the next start does the rest.
            return Ok(());
        }
        self.core.outside.dismiss(&agent).await;
        if purge {
            self.finish_purge(id).await?;
        }
        if let Some(tail) = self.core.tails.get(id) {
            tail.set_gone();
            tail.forget();
        }
        self.core.lifecycle.tell(LifecycleEvent::Deleted { agent: id, at: now });
        Ok(())
    }

    /// Finishes a purge that was saved before the server was restarted.
    pub(crate) async fn purge_in_background(&self, id: AgentId) {
        if !self.until_stopped(id).await {
            return;
        }
        if let Err(error) = self.finish_purge(id).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(agent = %id, error, "cannot purge an agent; retrying after the next start");
        }
    }

    /// Waits until nothing of an agent runs, for at most `limits.shutdown_timeout_s`. Returns false if the server
    /// shuts down meanwhile.
    async fn until_stopped(&self, id: AgentId) -> bool {
        let Some(tail) = self.core.tails.get(id) else { return true };
        if tokio::time::timeout(self.core.limits.commands.shutdown_timeout, tail.until_idle()).await.is_err()
        {
            tracing::warn!(agent = %id, "deleted an agent whose processes are still being stopped");
        }
        // A task that ends because of the shutdown leaves its agent running.
        !self.core.closing.is_cancelled()
    }

    /// Removes everything that belongs to an agent. Its rows are removed last: while they exist, the next start knows
    /// that the purge must be finished.
    async fn finish_purge(&self, id: AgentId) -> Result<(), StoreError> {
        if let Err(error) = self.core.outside.runs.forget(id).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(agent = %id, error, "cannot remove the files of a run");
        }
        self.remove_folders(id).await;
        self.core.outside.agents.purge(id, self.core.now()).await?;
        Ok(())
    }

    /// Removes the folder that was created for an agent. All agent types are asked, because the agent's own type may
    /// no longer be configured.
    pub(crate) async fn remove_folders(&self, id: AgentId) {
        for (name, kind) in self.core.outside.types.all() {
            if let Err(error) = kind.workspace.remove(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, kind = name, error, "cannot remove the folder of an agent");
            }
        }
    }
}
