//! Which agents are followed at this node, of those that are cancelled when nobody follows them.

use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId};
use tokenrail_ports::StoreError;

use crate::service::AgentService;
use crate::tails::Tail;

impl AgentService {
    /// Saves that an agent is followed here, as long as it is, so that no other node cancels it meanwhile. Only on a
    /// shared store, and only for an agent that is cancelled when nobody follows it.
    pub(crate) fn note_watched(&self, agent: &Agent, tail: &Arc<Tail>) {
        if !agent.cancel_on_disconnect || !self.core.outside.nodes.is_shared() || !tail.begin_watch() {
            return;
        }
        let (service, id, tail) = (self.clone(), agent.id, Arc::clone(tail));
        let watch = async move { service.watch(id, &tail).await };
        self.core.tracker.spawn_on(watch, &self.core.runtime);
    }

    /// Watches what this node's previous process or a lost node had saved as followed: their followers may have gone
    /// without anybody noticing.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn watch_what_was_followed(&self) -> Result<(), StoreError> {
        for id in self.core.outside.nodes.take_watched().await? {
            if self.core.tails.get(id).is_some_and(|tail| tail.is_watched()) {
                continue;
            }
            if let Some(agent) = self.core.outside.agents.get(id).await? {
                self.note_watched(&agent, &self.core.tails.of(id));
            }
        }
        Ok(())
    }

    async fn watch(&self, agent: AgentId, tail: &Tail) {
        self.set_watched(agent, true).await;
        loop {
            while 0 < tail.followers() {
                tokio::select! {
                    biased;
                    () = self.core.closing.cancelled() => return,
                    () = tail.last_left() => {}
                }
            }
            let grace = tokio::time::sleep(self.core.limits.run.disconnect_grace);
            if self.core.closing.run_until_cancelled(grace).await.is_none() {
                // The row stays, and the next start looks at it.
                return;
            }
            if 0 < tail.followers() {
                continue;
            }
            // First the row: of two nodes whose last followers leave at the same time, one finds no other row.
            self.set_watched(agent, false).await;
            let is_watched = self.is_watched_elsewhere(agent).await;
            // All of that may have taken long.
            if 0 < tail.followers() {
                self.set_watched(agent, true).await;
                continue;
            }
            if !is_watched {
                self.cancel_unfollowed_agent(agent).await;
            }
            if tail.end_watch_if_unfollowed() {
                return;
            }
            self.set_watched(agent, true).await;
        }
    }

    /// Retries while the store fails. If the server shuts down meanwhile, the agent counts as followed.
    async fn is_watched_elsewhere(&self, agent: AgentId) -> bool {
        let mut pause = self.core.limits.saving.retry_pause;
        loop {
            match self.core.outside.nodes.is_watched_elsewhere(agent).await {
                Ok(is_watched) => return is_watched,
                Err(error) if !error.is_transient() => return true,
                Err(_) => {}
            }
            let Some(longer) = self.core.pause(pause).await else { return true };
            pause = longer;
        }
    }

    /// Retries while the store fails: a row that stays keeps the agent running.
    async fn set_watched(&self, agent: AgentId, watched: bool) {
        let mut pause = self.core.limits.saving.retry_pause;
        while let Err(error) = self.core.outside.nodes.set_watched(agent, watched).await {
            if !error.is_transient() {
                return;
            }
            let Some(longer) = self.core.pause(pause).await else { return };
            pause = longer;
        }
    }
}
