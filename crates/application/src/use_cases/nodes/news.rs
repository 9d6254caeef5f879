//! What clients that watch all agents must learn of changes that other nodes have made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId, Copied, ListedAgent, Timestamp};
use tokenrail_ports::{Standing, StoreError, TouchMark};

use crate::core::Core;
use crate::lifecycle::{LifecycleEvent, UpdateCause};
use crate::node_state::{CHANGES_MAX, Pending};
use crate::open_requests::Needs;

/// How much the clocks of two nodes may differ.
const CLOCKS_DIFFER_MS: i64 = 60_000;

/// Tells clients what other nodes have changed, until the server shuts down.
pub(crate) async fn tell_news(core: Arc<Core>) {
    let mut teller = Teller::new(Arc::clone(&core));
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.news.woken.notified() => {}
        }
        let pending = std::mem::take(&mut *core.news.pending());
        if let Err(error) = teller.tell(pending).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot read what other nodes have changed, retrying"
            );
            core.news.missed();
            if core.pause(core.limits.saving.retry_pause_max).await.is_none() {
                return;
            }
        }
    }
}

struct Teller {
    core: Arc<Core>,
    /// Where the look at what has changed goes on. `None` before the first one.
    mark: Option<TouchMark>,
    /// What was told at that mark, because a look may return it again.
    told: BTreeSet<(AgentId, TouchMark)>,
    /// Since when clients know all agents that existed.
    listed_at: Timestamp,
    /// The agents that were created since then and that were told.
    created: BTreeSet<AgentId>,
    /// What clients know of agents that have changed, at most [`CHANGES_MAX`]. A change of which a hint has told is not
    /// told again when a look finds it.
    known: BTreeMap<AgentId, (ListedAgent, Needs)>,
}

/// Why an agent is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Hint,
    Look,
}

impl Teller {
    fn new(core: Arc<Core>) -> Self {
        let listed_at = core.now();
        Self {
            core,
            mark: None,
            told: BTreeSet::new(),
            listed_at,
            created: BTreeSet::new(),
            known: BTreeMap::new(),
        }
    }

    async fn tell(&mut self, pending: Pending) -> Result<(), StoreError> {
        let Pending { created, changed, deleted, missed, look } = pending;
        if missed {
            self.start_anew().await?;
        }
        for agent in created {
            if let Some(agent) = self.core.outside.agents.get(agent).await? {
                self.tell_created(&agent);
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
        self.created.clear();
        self.known.clear();
        self.core.news.forget_deleted();
        self.core.lifecycle.miss();
        Ok(())
    }

    fn tell_created(&mut self, agent: &Agent) {
        if CHANGES_MAX <= self.created.len() {
            (self.listed_at, self.created) = (self.core.now(), BTreeSet::new());
        }
        self.created.insert(agent.id);
        self.core.note_told(agent);
        let listed = ListedAgent::new(agent.clone(), self.core.limits.lists.list_field_bytes);
        self.core.lifecycle.tell(LifecycleEvent::Created { agent: Box::new(listed), at: agent.created_at });
    }

    async fn tell_changed(&mut self, id: AgentId, occasion: Occasion) -> Result<(), StoreError> {
        self.apply_standing(id).await?;
        let core = &self.core;
        let Some(agent) = core.outside.agents.get(id).await? else {
            self.tell_deleted(id);
            return Ok(());
        };
        if agent.deleted_at.is_some() {
            // The node that deletes it says so when it has stopped.
            return Ok(());
        }
        core.read_requests_elsewhere(&agent).await?;
        core.note_told(&agent);
        let (status, needs, at) = (agent.status, core.open_requests.needs(id), core.now());
        let now = (ListedAgent::new(agent, core.limits.lists.list_field_bytes), needs);
        if occasion == Occasion::Look && self.known.get(&id) == Some(&now) {
            return Ok(());
        }
        if CHANGES_MAX <= self.known.len() {
            self.known.clear();
        }
        self.known.insert(id, now);
        core.lifecycle.tell(LifecycleEvent::Updated {
            agent: id,
            status,
            needs,
            cause: UpdateCause::Edit,
            at,
        });
        Ok(())
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

    fn tell_deleted(&mut self, agent: AgentId) {
        self.known.remove(&agent);
        if let Some(tail) = self.core.tails.get(agent) {
            tail.set_gone();
            tail.forget();
        }
        self.core.forget_requests_elsewhere(agent);
        if self.core.news.note_deleted(agent) {
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

    async fn tell_touched(&mut self, id: AgentId) -> Result<(), StoreError> {
        match self.core.outside.agents.get(id).await? {
            // This node has told what its agents have done, and what users have changed here. But a user may have
            // changed them at a node whose hints do not arrive.
            Some(agent) if self.has_told(&agent) => Ok(()),
            Some(agent) if agent.deleted_at.is_none() => {
                // Two clocks are compared, so clients may know it already.
                let is_new = self.listed_at.0 - CLOCKS_DIFFER_MS < agent.created_at.0;
                let is_told = self.core.is_here(&agent) && self.core.news.may_be_told(id);
                if is_new && !is_told && !self.created.contains(&id) {
                    self.tell_created(&agent);
                }
                self.tell_changed(id, Occasion::Look).await
            }
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
        is_mine && agent.deleted_at.is_none() && core.news.is_told_as_it_is(agent)
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
