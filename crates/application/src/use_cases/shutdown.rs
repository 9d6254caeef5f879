//! Ends the service.

use std::time::Duration;

use crate::service::AgentService;

impl AgentService {
    /// Ends the streams and the tasks. The agents keep running and are adopted by the next start, unless
    /// `stop_agents`. Waits for at most `patience`. Returns false if that was not enough.
    pub async fn shutdown(&self, stop_agents: bool, patience: Duration) -> bool {
        let wait = async {
            if stop_agents {
                self.core.draining.cancel();
                while 0 < self.core.active_agents() {
                    self.core.retired.notified().await;
                }
            }
            self.core.closing.cancel();
            self.core.tracker.close();
            self.core.tracker.wait().await;
            for (_, kind) in self.core.outside.types.all() {
                kind.runner.dismiss_all().await;
            }
        };
        let in_time = tokio::time::timeout(patience, self.beating(wait)).await.is_ok();
        self.core.closing.cancel();
        // Also if a task takes longer: otherwise the node would soon be declared lost, and not waited for.
        let leaving = tokio::time::timeout(self.core.limits.commands.command_timeout, self.leave());
        in_time & leaving.await.is_ok()
    }

    /// Tells the other nodes that this one will be back. If that fails, they find it silent.
    async fn leave(&self) {
        if self.core.membership.me().is_none() || self.core.membership.is_fenced() {
            return;
        }
        if let Err(error) = self.core.outside.nodes.leave().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot tell the other nodes that this one stops");
        }
    }
}
