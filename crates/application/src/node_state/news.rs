//! What other nodes have changed and clients that watch all agents must learn.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::AgentId;
use tokenrail_ports::Ring;
use tokio::sync::Notify;

/// Changes that wait to be read. If there are more, clients load the list again.
pub(crate) const CHANGES_MAX: usize = 1024;

/// Changes that other nodes have made.
#[derive(Default)]
pub(crate) struct News {
    pending: Mutex<Pending>,
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

impl News {
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
