//! Continues what was under way when the server ended.

use std::collections::BTreeSet;

use tokenrail_domain::{Agent, TurnState};
use tokenrail_ports::StoreError;
use tokio::time::Instant;

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// Continues what was under way when the server ended. It adopts or closes running turns, runs queued ones,
    /// finishes cancels and purges, and ends runs that belong to no turn. Returns the number of agents with open
    /// turns.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn recover(&self) -> Result<usize, Refusal> {
        // Before anything is read: from here on, nothing that the previous process sent can still be saved.
        self.while_busy(|| self.core.join()).await?;
        // What follows may take long, and this node must not be declared lost meanwhile.
        self.begin_to_beat();
        if self.core.outside.nodes.is_shared() {
            // Before the first client asks which node has an agent.
            self.core.membership.know(self.core.outside.nodes.nodes().await?);
        }
        // Only short fields are read here.
        let field_bytes = self.core.limits.lists.list_field_bytes;
        let agents = self.core.outside.agents.with_open_turns(field_bytes).await?;
        let agents: Vec<Agent> = agents.into_iter().map(|listed| listed.agent).collect();
        self.sweep(&agents).await?;
        // The last that may fail: the next try is the same node, and would fence the tasks that this one has begun.
        let to_purge = self.core.outside.agents.to_purge().await?;
        for agent in &agents {
            self.core.tails.of(agent.id).raise(agent.head);
            self.start_task(agent);
        }
        // Only now: a run that is started before the sweep would be swept.
        self.work_with_other_nodes();
        for agent in to_purge {
            let service = self.clone();
            let purge = async move { service.purge_in_background(agent).await };
            self.core.tracker.spawn_on(purge, &self.core.runtime);
        }
        Ok(agents.len())
    }

    /// Ends the runs whose agents or turns are gone. A run continues if only its agent type is missing from the
    /// configuration: the type may be back at the next start.
    async fn sweep(&self, agents: &[Agent]) -> Result<(), Refusal> {
        let mut keep = BTreeSet::new();
        for agent in agents {
            let turns = self.while_busy(|| self.core.outside.agents.open_turns(agent.id)).await?;
            let running = turns.iter().filter(|turn| turn.state == TurnState::Running);
            keep.extend(running.map(|turn| (agent.id, turn.run)));
        }
        match self.core.outside.runs.sweep(&keep).await {
            Ok(0) => {}
            Ok(swept) => tracing::warn!(swept, "terminated runs that belong to no turn"),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot terminate runs that belong to no turn");
            }
        }
        Ok(())
    }

    /// Asks again while the store is busy, for `start_wait`.
    async fn while_busy<T, F>(&self, ask: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let (began, mut pause) = (Instant::now(), self.core.limits.saving.retry_pause);
        let wait = self.core.limits.nodes.start_wait;
        loop {
            match ask().await {
                Err(StoreError::Busy) if self.core.outside.nodes.is_shared() && began.elapsed() < wait => {
                    tracing::warn!(
                        "the database is still processing writes of the server that ran here before; retrying"
                    );
                    pause = self.core.pause(pause).await.ok_or(StoreError::Busy)?;
                }
                answer => return answer,
            }
        }
    }
}
