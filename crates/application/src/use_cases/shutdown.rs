//! Ends the service.

use std::collections::BTreeSet;
use std::time::Duration;

use tokenrail_ports::StoreError;

use crate::service::AgentService;

/// Agents that are let go in one go.
const LET_GO: usize = 1024;
/// How often that may fail.
const LET_GO_TRIES: u32 = 6;

/// What a server does with its agents when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtStop {
    /// They keep running, and are adopted by the next start.
    Keep,
    /// Those that run are cancelled. Turns that wait keep waiting.
    Cancel,
    /// Nothing of them would survive. Their open turns end as interrupted, and other nodes take those that need no node
    /// of their own, with the turns that wait.
    Leave,
    /// Another server is this node now, or other nodes have their turns. Nobody reads what runs here, so it ends.
    EndRuns,
}

impl AgentService {
    /// Ends the streams and the tasks, and does this with the agents. Waits for at most `patience`. Returns false if
    /// that was not enough.
    pub async fn shutdown(&self, agents: AtStop, patience: Duration) -> bool {
        let wait = async {
            if matches!(agents, AtStop::Cancel | AtStop::Leave) {
                self.core.drain(agents == AtStop::Leave);
                while 0 < self.core.active_agents() {
                    self.core.retired.notified().await;
                }
            }
            if agents == AtStop::Leave {
                self.let_all_go().await;
            }
            self.core.close();
            self.core.tracker.close();
            self.core.tracker.wait().await;
            for (_, kind) in self.core.outside.types.all() {
                kind.runner.dismiss_all().await;
            }
        };
        let in_time = tokio::time::timeout(patience, self.beating(wait)).await.is_ok();
        self.core.close();
        if agents == AtStop::EndRuns {
            self.end_all_runs().await;
        }
        // Also if a task takes longer: otherwise the node would soon be declared lost, and not waited for.
        let leaving = tokio::time::timeout(self.core.limits.commands.command_timeout, self.leave());
        in_time & leaving.await.is_ok()
    }

    /// Ends the tasks of a server that could not start. Its node says nothing to the others: it may not come back, and
    /// then they must find it silent. Returns false if `patience` was not enough.
    pub async fn abandon(&self, patience: Duration) -> bool {
        self.core.close();
        self.core.tracker.close();
        tokio::time::timeout(patience, self.core.tracker.wait()).await.is_ok()
    }

    /// Lets all agents go that need no node. After a failover of the store, this waits until all nodes have caught up.
    /// If it fails again and again, other nodes do it when this one is declared lost.
    async fn let_all_go(&self) {
        let types = self.core.outside.types.all().filter(|(_, kind)| !kind.runner.needs_home());
        let types: Vec<String> = types.map(|(name, _)| name.clone()).collect();
        let (mut pause, mut failures) = (self.core.limits.saving.retry_pause, 0);
        loop {
            match self.core.outside.nodes.let_all_go(types.clone(), LET_GO).await {
                Ok(0) => break,
                Ok(_) => {
                    self.core.offer_to_all_nodes();
                    continue;
                }
                Err(StoreError::Busy) => {}
                Err(error) => {
                    failures += 1;
                    let is_over = !error.is_transient() || LET_GO_TRIES <= failures;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, failures, "cannot hand agents over to the other nodes");
                    // Perhaps it was saved.
                    self.core.offer_to_all_nodes();
                    if is_over {
                        break;
                    }
                }
            }
            // Not `Core::pause`, which ends with the server. `shutdown` bounds the wait.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.core.limits.saving.retry_pause_max);
        }
    }

    async fn end_all_runs(&self) {
        match self.core.outside.runs.sweep(&BTreeSet::new()).await {
            Ok(0) => {}
            Ok(ended) => {
                tracing::warn!(ended, "ended the runs of turns that no longer belong to this server");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot end all runs of turns that no longer belong to this server");
            }
        }
    }

    /// Tells the other nodes that this one will be back. If that fails, they find it silent.
    async fn leave(&self) {
        if self.core.membership.me().is_none() || self.core.membership.is_fenced() {
            return;
        }
        if let Err(error) = self.core.outside.nodes.leave().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot tell the other nodes that this one is stopping");
        }
    }
}
