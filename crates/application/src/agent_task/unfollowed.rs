//! Cancels an agent after its last follower has left (`cancelOnDisconnect`).

use tokenrail_ports::StoreError;

use super::AgentTask;

impl AgentTask {
    pub(super) async fn watch_followers(&self) {
        loop {
            self.tail.unfollowed_for_task.notified().await;
            tokio::time::sleep(self.core.limits.run.disconnect_grace).await;
            self.cancel_unfollowed().await;
        }
    }

    /// Cancels the agent's open turns, unless a client follows the agent again. Retries, because no client will.
    async fn cancel_unfollowed(&self) {
        let mut pause = self.core.limits.saving.retry_pause;
        while self.tail.followers() == 0 {
            let queue = self.handle.queue.lock().await;
            let cancelled = self.core.outside.agents.cancel(self.agent, self.core.now()).await;
            // The cancel may be saved even if the outcome is unknown. After any other error, nothing is stopped yet.
            if matches!(cancelled, Ok(_) | Err(StoreError::OutcomeUnknown(_))) {
                self.handle.cancel();
                self.handle.poke();
            }
            drop(queue);
            let Err(error) = cancelled else {
                if let Ok(Some(agent)) = self.agent_row().await {
                    self.core.outside.dismiss(&agent).await;
                }
                return;
            };
            tracing::warn!(
                agent = %self.agent, error = &error as &dyn std::error::Error,
                "cannot save the cancellation of an agent that no longer has followers"
            );
            match self.core.pause(pause).await {
                Some(longer) if error.is_transient() => pause = longer,
                _ => return,
            }
        }
    }
}
