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
        let in_time = tokio::time::timeout(patience, wait).await.is_ok();
        self.core.closing.cancel();
        in_time
    }
}
