//! Takes over the agents of lost nodes, to end their open turns. `agent_task/lost_node.rs` ends them.

use std::collections::BTreeSet;

use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;

use crate::service::AgentService;

/// Agents that are taken over in one go.
const ORPHANS: usize = 256;

/// Takes over what nobody continues, until the server shuts down. Apart from the beats, because it may take long.
pub(crate) async fn take_over(service: AgentService) {
    let core = &service.core;
    loop {
        // Also at the start: a previous process may have left something.
        if let Err(error) = service.watch_what_was_followed().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot read which followers the lost nodes had; retrying"
            );
            if core.pause(core.limits.saving.retry_pause_max).await.is_none() {
                return;
            }
            core.orphans.notify_one();
        }
        let mut seen = BTreeSet::new();
        while service.take_over_orphans(&mut seen).await && !core.closing.is_cancelled() {}
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.orphans.notified() => {}
        }
    }
}

impl AgentService {
    /// Takes over a page of the agents that have an open turn and no node to continue it. One node takes each agent.
    /// Returns whether there may be more that are not in `seen`: those that are left to other nodes come again.
    async fn take_over_orphans(&self, seen: &mut BTreeSet<AgentId>) -> bool {
        let orphans = match self.core.outside.nodes.orphans(ORPHANS).await {
            Ok(orphans) => orphans,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot list the agents of lost nodes; retrying at the next heartbeat");
                return false;
            }
        };
        let mut has_new = false;
        for &agent in &orphans {
            if self.core.closing.is_cancelled() {
                return false;
            }
            has_new |= seen.insert(agent);
            if let Err(error) = self.take_over_agent(agent).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%agent, error, "cannot take over an agent of a lost node; retrying");
            }
        }
        has_new && orphans.len() == ORPHANS
    }

    async fn take_over_agent(&self, agent: AgentId) -> Result<(), StoreError> {
        if self.is_left_to_others(agent).await? {
            return Ok(());
        }
        let agents = &self.core.outside.agents;
        let is_taken = match self.core.outside.nodes.take_over(agent).await {
            // If it was saved, this node is the owner, and nobody else finds the agent.
            Err(StoreError::OutcomeUnknown(_)) => {
                self.until_answered(|| agents.claim(agent)).await?.flatten().is_some()
            }
            taken => taken?.is_some(),
        };
        if is_taken && let Some(agent) = self.until_answered(|| agents.get(agent)).await?.flatten() {
            tracing::warn!(agent = %agent.id, "ending the turns of an agent whose node is lost");
            self.start_task_of_taken(&agent);
        }
        Ok(())
    }

    /// Asks about an agent that this node may have taken over. Nobody else ends its turns then, so the question is
    /// repeated until it is answered. `None` if the server shuts down meanwhile: its next start finds the turns.
    async fn until_answered<T, F>(&self, ask: impl Fn() -> F) -> Result<Option<T>, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = self.core.limits.saving.retry_pause;
        loop {
            match ask().await {
                Err(error) if error.is_transient() => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "cannot read an agent that was taken over; retrying");
                }
                answered => return answered.map(Some),
            }
            match self.core.pause(pause).await {
                Some(longer) => pause = longer,
                None => return Ok(None),
            }
        }
    }

    /// Whether this node lacks the agent's type, and another one that is alive has it. Only with the type it is known
    /// whether the turns that wait end or run at any node. A node that is away may take minutes to be back, so nothing
    /// is left to it: turns end in time.
    async fn is_left_to_others(&self, agent: AgentId) -> Result<bool, StoreError> {
        let Some(agent) = self.core.outside.agents.get(agent).await? else { return Ok(false) };
        Ok(self.core.lacks_type(&agent) && !self.core.membership.names_with_type(&agent.kind).is_empty())
    }
}
