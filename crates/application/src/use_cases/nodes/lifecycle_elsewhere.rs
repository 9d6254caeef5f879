//! What clients that watch all agents must learn of changes that other nodes have made.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId, Copied, Timestamp};
use tokenrail_ports::{Hint, Standing, StoreError, TouchMark};

use crate::core::Core;
use crate::lifecycle::{LifecycleEvent, UpdateCause};
use crate::node_state::{CHANGES_MAX, Outcome, Pending, ReadAgent};
use crate::planted::{self, Bug};

/// How much the clocks of two nodes may differ.
const CLOCKS_DIFFER_MS: i64 = 60_000;

/// Tells clients what other nodes have changed, until the server shuts down.
pub(crate) async fn tell_lifecycle(core: Arc<Core>) {
    let mut teller = LifecycleTeller::new(Arc::clone(&core));
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.lifecycle_elsewhere.woken.notified() => {}
        }
        let pending = std::mem::take(&mut *core.lifecycle_elsewhere.pending());
        if let Err(error) = teller.tell(pending).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot read the lifecycle events of other nodes; retrying"
            );
            core.lifecycle_elsewhere.missed();
            if core.pause(core.limits.saving.retry_pause_max).await.is_none() {
                return;
            }
        }
    }
}

struct LifecycleTeller {
    core: Arc<Core>,
    /// Where the look at what has changed goes on. `None` before the first one.
    mark: Option<TouchMark>,
    /// What was told at that mark, because a look may return it again.
    told: BTreeSet<(AgentId, TouchMark)>,
    /// Since when clients know all agents that existed.
    listed_at: Timestamp,
}

/// Why an agent is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Hint,
    Look,
}

impl LifecycleTeller {
    fn new(core: Arc<Core>) -> Self {
        let listed_at = core.now();
        Self { core, mark: None, told: BTreeSet::new(), listed_at }
    }

    async fn tell(&mut self, pending: Pending) -> Result<(), StoreError> {
        let Pending { created, changed, deleted, missed, look } = pending;
        if missed {
            self.start_anew().await?;
        }
        for agent in created {
            // The hint may come late, when the agent is deleted.
            let agent = self.core.outside.agents.get(agent).await?;
            if let Some(agent) = agent.filter(|agent| agent.deleted_at.is_none()) {
                self.tell_created(agent);
            }
        }
        for agent in changed {
            self.tell_changed(agent, Occasion::Hint).await?;
        }
        for agent in deleted {
            self.apply_standing(agent).await?;
            self.tell_deleted(agent);
        }
        if look { self.look().await } else { Ok(()) }
    }

    /// Clients load the list again. What is followed here, and what agents need, is read again too.
    async fn start_anew(&mut self) -> Result<(), StoreError> {
        let mark = self.core.outside.agents.touched(None, 0).await?.mark;
        self.core.read_all_requests_elsewhere().await?;
        (self.mark, self.listed_at) = (Some(mark), self.core.now());
        self.told.clear();
        self.core.lifecycle_elsewhere.forget_told();
        self.core.lifecycle.miss();
        Ok(())
    }

    fn tell_created(&self, agent: Agent) {
        let core = &self.core;
        let (at, is_own) = (agent.created_at, core.is_here(&agent));
        let created = ReadAgent::new(agent, core.limits.lists.list_field_bytes, is_own);
        core.lifecycle_elsewhere.tell_created(created, |listed| {
            core.lifecycle.tell(LifecycleEvent::Created { agent: Box::new(listed), at });
        });
    }

    async fn tell_changed(&self, id: AgentId, occasion: Occasion) -> Result<(), StoreError> {
        self.apply_standing(id).await?;
        let core = &self.core;
        let told_before = core.lifecycle_elsewhere.told_so_far(id);
        let Some(agent) = core.outside.agents.get(id).await? else {
            self.tell_deleted(id);
            return Ok(());
        };
        if agent.deleted_at.is_some() {
            // The node that deletes it says so when it has stopped.
            return Ok(());
        }
        core.read_requests_elsewhere(&agent).await?;
        if self.is_new(&agent, occasion) {
            self.tell_created(agent.clone());
        }
        let (is_own, needs, at) = (core.is_here(&agent), core.open_requests.needs(id), core.now());
        let read = ReadAgent::new(agent, core.limits.lists.list_field_bytes, is_own);
        let outcome = core.lifecycle_elsewhere.tell_read(read, needs, told_before, |agent| {
            let (status, cause) = (agent.status, UpdateCause::Edit);
            core.lifecycle.tell(LifecycleEvent::Updated { agent: id, status, needs, cause, at });
        });
        if outcome == Outcome::Outdated {
            core.lifecycle_elsewhere.note(Hint::Changed(id));
        }
        Ok(())
    }

    /// Whether clients do not know that the agent was created. A look compares the clocks of two nodes, so they may
    /// know it. Hints arrive in order, so only an agent of this node may have done something before it was told.
    fn is_new(&self, agent: &Agent, occasion: Occasion) -> bool {
        let clocks_differ_ms = match occasion {
            Occasion::Hint if self.core.is_here(agent) => 0,
            Occasion::Hint => return false,
            Occasion::Look => CLOCKS_DIFFER_MS,
        };
        self.listed_at.0 - clocks_differ_ms < agent.created_at.0
            && !self.core.lifecycle_elsewhere.may_know(agent.id)
    }

    /// Tells the followers of an agent how far it is. What was saved last is shown before its end.
    async fn apply_standing(&self, id: AgentId) -> Result<(), StoreError> {
        if self.core.tails.get(id).is_some() {
            let standings = self.core.outside.agents.standings(vec![id]).await?;
            let standing: Option<&Standing> = standings.first();
            self.core.apply_standing(id, standing);
        }
        Ok(())
    }

    fn tell_deleted(&self, agent: AgentId) {
        if let Some(tail) = self.core.tails.get(agent)
            && planted::correctly(Bug::PurgeUntoldElsewhere)
        {
            tail.set_gone();
            tail.forget();
        }
        self.core.forget_requests_elsewhere(agent);
        if self.core.lifecycle_elsewhere.note_deleted(agent) {
            self.core.lifecycle.tell(LifecycleEvent::Deleted { agent, at: self.core.now() });
        }
    }

    /// Tells what has changed since the last look.
    async fn look(&mut self) -> Result<(), StoreError> {
        let Some(mark) = self.mark else { return self.start_anew().await };
        let touched = self.core.outside.agents.touched(Some(mark), CHANGES_MAX).await?;
        for touch in &touched.agents {
            if !self.told.contains(touch) {
                self.tell_touched(touch.0).await?;
            }
        }
        self.told = touched.agents.into_iter().collect();
        self.mark = Some(touched.mark);
        Ok(())
    }

    async fn tell_touched(&self, id: AgentId) -> Result<(), StoreError> {
        match self.core.outside.agents.get(id).await? {
            // This node has told what its agents have done, and what users have changed here. But a user may have
            // changed them at a node whose hints do not arrive.
            Some(agent) if self.has_told(&agent) => Ok(()),
            Some(agent) if agent.deleted_at.is_none() => self.tell_changed(id, Occasion::Look).await,
            Some(agent) if is_being_imported(&agent) => Ok(()),
            // Its node ends its turn first.
            Some(_) if self.is_open(id).await? => Ok(()),
            Some(_) | None => {
                self.tell_deleted(id);
                Ok(())
            }
        }
    }

    fn has_told(&self, agent: &Agent) -> bool {
        let core = &self.core;
        let is_mine = core.is_here(agent) && core.outside.bus.is_working();
        is_mine && agent.deleted_at.is_none() && core.lifecycle_elsewhere.is_told_as_it_is(agent)
    }

    async fn is_open(&self, id: AgentId) -> Result<bool, StoreError> {
        let standings = self.core.outside.agents.standings(vec![id]).await?;
        Ok(standings.iter().any(|standing| standing.open))
    }
}

/// The store hides an agent until its import is complete.
fn is_being_imported(agent: &Agent) -> bool {
    agent.copy == Some(Copied::File) && agent.deleted_at == Some(agent.created_at)
}
