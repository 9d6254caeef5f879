//! What other nodes have changed and clients that watch all agents must learn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{Agent, AgentId};
use tokenrail_ports::Ring;
use tokio::sync::Notify;

/// Changes that wait to be read. If there are more, clients load the list again.
pub(crate) const CHANGES_MAX: usize = 1024;

/// Changes that other nodes have made.
#[derive(Default)]
pub(crate) struct News {
    pending: Mutex<Pending>,
    told: Mutex<Told>,
    pub(crate) woken: Notify,
}

#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) created: BTreeSet<AgentId>,
    pub(crate) changed: BTreeSet<AgentId>,
    pub(crate) deleted: BTreeSet<AgentId>,
    pub(crate) missed: bool,
    pub(crate) look: bool,
}

/// What the clients of this node know of names, pins, archiving and deletes. At most [`CHANGES_MAX`] of each kind.
#[derive(Default)]
struct Told {
    /// Only agents of this node.
    in_lists: BTreeMap<AgentId, InLists>,
    /// The newest agent that has left no room for others there.
    forgotten: Option<AgentId>,
    deleted: BTreeSet<AgentId>,
}

/// What users may change about an agent.
#[derive(PartialEq, Eq)]
struct InLists {
    name: Option<String>,
    pinned: bool,
    archived: bool,
}

impl InLists {
    fn of(agent: &Agent) -> Self {
        Self { name: agent.name.clone(), pinned: agent.pinned, archived: agent.archived }
    }
}

impl News {
    /// Clients that read the agent from here on find it as it is.
    pub(crate) fn note_told(&self, agent: &Agent) {
        let mut told = self.told();
        told.in_lists.insert(agent.id, InLists::of(agent));
        if CHANGES_MAX < told.in_lists.len() {
            let oldest = told.in_lists.pop_first().map(|(oldest, _)| oldest);
            told.forgotten = told.forgotten.max(oldest);
        }
    }

    /// Whether clients were told of this agent of this node.
    pub(crate) fn is_told(&self, agent: AgentId) -> bool {
        self.told().in_lists.contains_key(&agent)
    }

    /// The same, or it is not known any more. The ids of agents are in the order of their times.
    pub(crate) fn may_be_told(&self, agent: AgentId) -> bool {
        self.is_told(agent) || self.told().forgotten.is_some_and(|forgotten| agent <= forgotten)
    }

    /// Whether clients were told of the agent since users have changed it.
    pub(crate) fn is_told_as_it_is(&self, agent: &Agent) -> bool {
        self.told().in_lists.get(&agent.id).is_some_and(|told| *told == InLists::of(agent))
    }

    /// Notes that clients learn of a delete. Returns false if they knew it.
    pub(crate) fn note_deleted(&self, agent: AgentId) -> bool {
        let mut told = self.told();
        told.in_lists.remove(&agent);
        if CHANGES_MAX <= told.deleted.len() {
            told.deleted.clear();
        }
        told.deleted.insert(agent)
    }

    /// Clients load the list again. What was deleted may be back after a failover.
    pub(crate) fn forget_deleted(&self) {
        self.told().deleted.clear();
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, ring: Ring) {
        let mut pending = self.pending();
        match ring {
            Ring::Created(agent) => pending.created.insert(agent),
            Ring::Changed(agent) => pending.changed.insert(agent),
            Ring::Deleted(agent) => pending.deleted.insert(agent),
            Ring::Head { .. } | Ring::Errand(_) | Ring::Letter(_) => false,
        };
        let Pending { created, changed, deleted, .. } = &*pending;
        if CHANGES_MAX < created.len() + changed.len() + deleted.len() {
            *pending = Pending { missed: true, ..Pending::default() };
        }
        drop(pending);
        self.woken.notify_one();
    }

    /// Changes may have been missed.
    pub(crate) fn missed(&self) {
        *self.pending() = Pending { missed: true, ..Pending::default() };
        self.woken.notify_one();
    }

    /// Looks for what has changed, because another node may be unable to send hints.
    pub(crate) fn look(&self) {
        self.pending().look = true;
        self.woken.notify_one();
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
