//! Deletes agents, and purges what is left of them. Both are saved before they are carried out, so that after a crash
//! the next start finishes them.

use std::time::Duration;

use tokenrail_domain::{Agent, AgentId, Copied, NodeId};
use tokenrail_ports::{Deletion, Hint, StoreError};
use tokio::time::{Instant, sleep};

use super::cancel::Wake;
use crate::error::Refusal;
use crate::service::AgentService;

/// How often to check what another node has done.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often to try to remove the files of an agent before the next start.
const REMOVE_TRIES: u32 = 11;

/// The first pause between two of these tries. Each is twice as long as the one before: together, they take 17 minutes.
const REMOVE_PAUSE: Duration = Duration::from_secs(1);

/// The pause between two tries on a store that is looked at again and again.
pub(super) const REMOVE_AGAIN: Duration = Duration::from_mins(1);

/// What another node does with an agent that is deleted.
#[derive(Debug, Clone, Copy)]
enum Elsewhere {
    Stopped,
    Purged,
}

impl AgentService {
    /// Stops an agent and removes it from the lists. [`Deletion::Purge`] also removes everything that belongs to it:
    /// its history, the files of its runs, and the folder that was created for it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn delete(&self, id: AgentId, deletion: Deletion) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_delete(id, deletion).await }).await
    }

    async fn do_delete(&self, id: AgentId, deletion: Deletion) -> Result<(), Refusal> {
        let now = self.core.now();
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            let deleted = agents.delete(id, now, deletion).await?;
            Ok(if deleted { Wake::TaskAndRun } else { Wake::Nobody })
        };
        let deadline = self.core.command_deadline();
        if self.save_and_signal_stop(&agent, deadline, save).await? == Wake::Nobody {
            return Err(Refusal::NotFound(id));
        }
        let rest = match self.core.elsewhere(&agent) {
            None => self.finish_delete(&agent, deletion).await,
            Some(home) => self.finish_delete_elsewhere(&agent, home, deletion).await,
        };
        if matches!(rest, Ok(false)) {
            // The deletion is saved: the next start does the rest.
            return Ok(());
        }
        // Also after an error, because the deletion is saved.
        if let Some(tail) = self.core.tails.get(id) {
            tail.set_gone();
            tail.forget();
        }
        self.core.tell_deleted(id, now);
        rest.map(drop).map_err(Refusal::after_save)
    }

    /// Returns false if the server shuts down meanwhile.
    async fn finish_delete(&self, agent: &Agent, deletion: Deletion) -> Result<bool, Refusal> {
        if !self.until_stopped(agent.id).await {
            return Ok(false);
        }
        self.core.outside.dismiss(agent).await;
        if deletion == Deletion::KeepHistory {
            return Ok(true);
        }
        let purged = self.finish_purge(agent.id).await;
        if !matches!(purged, Ok(true)) && !self.core.outside.nodes.is_shared() {
            // Some of it is still there. The client is not kept waiting for it. On a shared store, the next look finds
            // it.
            let (service, id) = (self.clone(), agent.id);
            let again = async move { service.purge_in_background(id).await };
            self.core.tracker.spawn_on(again, &self.core.runtime);
        }
        purged?;
        Ok(true)
    }

    /// The same, for an agent of another node. That node stops it and removes its files. If the node is lost, or the
    /// agent has none, its rows are removed here. Right after a failover, a node that counts as lost may be back.
    async fn finish_delete_elsewhere(
        &self,
        agent: &Agent,
        home: NodeId,
        deletion: Deletion,
    ) -> Result<bool, Refusal> {
        let until = Instant::now() + self.core.limits.commands.shutdown_timeout;
        if !self.until_elsewhere(agent.id, Elsewhere::Stopped, until).await? {
            return Ok(false);
        }
        self.dismiss(agent, until).await?;
        if deletion == Deletion::KeepHistory {
            return Ok(true);
        }
        let has_no_files = agent.copy == Some(Copied::File) || agent.is_unclaimed();
        if has_no_files || self.core.is_home_lost(agent) && !self.core.outside.nodes.is_catching_up().await? {
            self.core.outside.agents.purge(agent.id, self.core.now()).await?;
            return Ok(true);
        }
        self.core.send_hint(Hint::Errand(home));
        self.until_elsewhere(agent.id, Elsewhere::Purged, until).await
    }

    /// Waits until another node has stopped or purged an agent, but not longer than `until`. Returns false if the
    /// server shuts down meanwhile.
    async fn until_elsewhere(&self, id: AgentId, what: Elsewhere, until: Instant) -> Result<bool, Refusal> {
        loop {
            let standing = self.core.outside.agents.standings(vec![id]).await?.pop();
            let is_done = match what {
                Elsewhere::Stopped => standing.is_none_or(|standing| !standing.open),
                Elsewhere::Purged => standing.is_none(),
            };
            if is_done || until <= Instant::now() {
                return Ok(true);
            }
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Ok(false),
                () = sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Finishes a purge that is saved, and tries again while that fails. After the last try, the next start finishes
    /// it. On a shared store, the looks at what this node has to do try again.
    pub(crate) async fn purge_in_background(&self, id: AgentId) {
        let mut pause = REMOVE_PAUSE;
        for tried in 1..=REMOVE_TRIES {
            if self.try_to_purge(id).await.is_none() || self.core.outside.nodes.is_shared() {
                return;
            }
            if tried < REMOVE_TRIES && self.core.pause(pause).await.is_none() {
                return;
            }
            pause *= 2;
        }
        tracing::error!(agent = %id, "cannot purge an agent; retrying after the next start");
    }

    /// Finishes a purge that is saved. If that fails, returns after how long it may be tried again.
    pub(super) async fn try_to_purge(&self, id: AgentId) -> Option<Duration> {
        if !self.until_stopped(id).await {
            return None;
        }
        match self.finish_purge(id).await {
            Ok(true) => None,
            Ok(false) => Some(REMOVE_AGAIN),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, error, "cannot purge an agent; retrying");
                Some(self.core.limits.saving.retry_pause_max)
            }
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
    /// that the purge must be finished. Returns false if some of its files could not be removed.
    async fn finish_purge(&self, id: AgentId) -> Result<bool, StoreError> {
        if !self.remove_files(id).await {
            return Ok(false);
        }
        self.core.outside.agents.purge(id, self.core.now()).await?;
        Ok(true)
    }

    /// Removes the files of an agent that are on this node: those of its runs, and its folder. Returns whether nothing
    /// of them is left.
    pub(super) async fn remove_files(&self, id: AgentId) -> bool {
        let forgotten = self.core.outside.runs.forget(id).await;
        if let Err(error) = &forgotten {
            let error = error as &dyn std::error::Error;
            tracing::error!(agent = %id, error, "cannot remove the files of a run");
        }
        self.remove_folders(id).await && forgotten.is_ok()
    }

    /// Removes the folder that was created for an agent. All agent types are asked, because the agent's own type may
    /// no longer be configured. Returns whether it is removed.
    pub(crate) async fn remove_folders(&self, id: AgentId) -> bool {
        let mut are_removed = true;
        for (name, kind) in self.core.outside.types.all() {
            if let Err(error) = kind.workspace.remove(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, kind = name, error, "cannot remove the folder of an agent");
                are_removed = false;
            }
        }
        are_removed
    }
}
