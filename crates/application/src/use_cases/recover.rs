//! Takes up what was left when the server ended.

use std::collections::BTreeSet;

use tokenrail_domain::{Agent, TurnState};

use crate::error::Refusal;
use crate::service::AgentService;

impl AgentService {
    /// Takes up what an earlier life of the server left: running turns are adopted or closed, waiting ones run, what
    /// was being stopped or purged is finished, and runs that belong to no turn are ended. Gives the number of agents
    /// taken up.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn recover(&self) -> Result<usize, Refusal> {
        // What is looked at here is short.
        let field_bytes = self.core.limits.list_field_bytes;
        let agents = self.core.outside.agents.with_open_turns(field_bytes).await?;
        let agents: Vec<Agent> = agents.into_iter().map(|listed| listed.agent).collect();
        self.sweep(&agents).await?;
        for agent in &agents {
            self.core.tails.of(agent.id).raise(agent.head);
            self.ensure_task(agent);
        }
        for agent in self.core.outside.agents.to_purge().await? {
            let service = self.clone();
            let purge = async move { service.purge_in_background(agent).await };
            self.core.tracker.spawn_on(purge, &self.core.runtime);
        }
        Ok(agents.len())
    }

    /// Ends the runs of earlier lives that nobody will take up: their agents or turns are gone. Those whose types are
    /// not in the configuration stay: they may be there again at the next start.
    async fn sweep(&self, agents: &[Agent]) -> Result<(), Refusal> {
        let types = &self.core.outside.types;
        let mut keep = BTreeSet::new();
        for agent in agents {
            let turns = self.core.outside.agents.open_turns(agent.id).await?;
            let running = turns.iter().filter(|turn| turn.state == TurnState::Running);
            keep.extend(running.map(|turn| (agent.id, turn.run)));
        }
        for (name, kind) in types {
            match kind.runner.sweep(&keep).await {
                Ok(0) => {}
                Ok(swept) => tracing::warn!(kind = name, swept, "terminated runs that belong to no turn"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(kind = name, error, "cannot terminate runs that belong to no turn");
                }
            }
        }
        Ok(())
    }
}
