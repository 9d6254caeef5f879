//! Carries out what other nodes have saved for this one: turns that wait, stops, purges, files of agents that are gone,
//! letters (`letters.rs`), and launches that wait for a node (`launches.rs`).

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{AgentId, StopReason, TurnState};
use tokenrail_ports::{OpenErrand, StoreError};

use crate::error::Refusal;
use crate::planted::{self, Bug};
use crate::service::AgentService;
use crate::stats::Counters;
use crate::use_cases::delete::REMOVE_AGAIN;

/// Errands of each kind in one look. The others wait until there are fewer.
const ERRANDS: usize = 1024;

/// Carries out errands until the server shuts down.
pub(crate) async fn run_errands(service: AgentService) {
    let core = &service.core;
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.work_left_here.notified() => {}
        }
        // A node that may have been declared lost begins nothing.
        if core.until_in_touch().await.is_none() {
            return;
        }
        // Each by itself: what is wrong with one must not hold up the others.
        let done = [
            service.look_at_letters().await,
            service.look_at_errands().await,
            service.claim_launches().await,
        ];
        for done in done {
            if let Err(error) = done {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot read the commands from other nodes");
            }
        }
    }
}

impl AgentService {
    /// Carries out each errand in a task of its own: one agent that waits for the store holds up no other.
    async fn look_at_errands(&self) -> Result<(), StoreError> {
        let errands = self.core.outside.nodes.errands(ERRANDS).await?;
        for errand in errands.turns {
            let service = self.clone();
            self.carry_out_once(errand.agent, async move {
                if let Err(error) = service.carry_out(errand).await {
                    let (agent, error) = (errand.agent, &error as &dyn std::error::Error);
                    tracing::warn!(%agent, error, "cannot execute a command from another node");
                }
            });
        }
        for agent in errands.to_purge {
            let service = self.clone();
            self.remove_once(agent, async move { service.try_to_purge(agent).await });
        }
        for agent in planted::instead(Bug::LeftoversForgotten, errands.leftovers, Vec::new) {
            let service = self.clone();
            self.remove_once(agent, async move { service.remove_leftover(agent).await });
        }
        Ok(())
    }

    /// Removes files of an agent with `remove`. If that fails, it returns after how long it may be tried again.
    /// Meanwhile, looks that find the same do nothing, and other errands of the agent are carried out.
    fn remove_once(&self, agent: AgentId, remove: impl Future<Output = Option<Duration>> + Send + 'static) {
        let Some(removal) = self.core.removals.begin(agent) else { return };
        let core = Arc::clone(&self.core);
        self.carry_out_once(agent, async move {
            Counters::add(&core.counters.errands, 1);
            if let Some(pause) = remove.await {
                let waiting = Arc::clone(&core);
                let wait = async move {
                    waiting.pause(pause).await;
                    drop(removal);
                };
                core.tracker.spawn_on(wait, &core.runtime);
            }
        });
    }

    /// Does nothing if an errand of this agent is underway. The next look finds what is left.
    fn carry_out_once(&self, agent: AgentId, errand: impl Future<Output = ()> + Send + 'static) {
        let Some(begun) = self.core.errands.begin(agent) else { return };
        let work = async move {
            errand.await;
            drop(begun);
        };
        self.core.tracker.spawn_on(work, &self.core.runtime);
    }

    /// Removes the files of an agent whose home is not here any more: another node has purged it while this one was
    /// lost, or it was let go. If that fails, returns after how long it may be tried again.
    async fn remove_leftover(&self, agent: AgentId) -> Option<Duration> {
        match self.try_to_remove_leftover(agent).await {
            Ok(true) => None,
            Ok(false) => Some(REMOVE_AGAIN),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    %agent,
                    error,
                    "cannot determine which files of an agent this node must remove; retrying"
                );
                Some(self.core.limits.saving.retry_pause)
            }
        }
    }

    /// Returns false if some of the files could not be removed.
    async fn try_to_remove_leftover(&self, agent: AgentId) -> Result<bool, StoreError> {
        // Its folder is not made here meanwhile: see `agent_task/folder.rs`.
        let Some(_begun) = self.core.leftovers.begin(agent) else { return Ok(true) };
        if self.core.outside.agents.get(agent).await?.is_some_and(|found| self.core.is_here(&found)) {
            // This node has taken it again since.
            return Ok(true);
        }
        if !self.remove_files(agent).await {
            return Ok(false);
        }
        self.core.outside.nodes.forget_leftover(agent).await?;
        Ok(true)
    }

    async fn carry_out(&self, errand: OpenErrand) -> Result<(), Refusal> {
        let Some(handle) = self.core.task_handle(errand.agent) else {
            if let Some(agent) = self.core.outside.agents.get(errand.agent).await? {
                Counters::add(&self.core.counters.errands, 1);
                self.start_task(&agent);
            }
            return Ok(());
        };
        if !errand.stop {
            // Its task comes to the turns that wait.
            return Ok(());
        }
        // Locked, so that the turn that is read as running is the one that gets the signal.
        let _queue = self.core.lock_queue(&handle, self.core.command_deadline()).await?;
        let open = self.core.outside.agents.open_turns(errand.agent).await?;
        let is_cancelled = open
            .first()
            .is_some_and(|turn| turn.state == TurnState::Running && turn.stop == Some(StopReason::Cancelled));
        if is_cancelled {
            handle.cancel();
        }
        handle.poke();
        Ok(())
    }
}
