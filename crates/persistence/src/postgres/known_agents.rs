//! The keys of agents, by their ids.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::AgentId;

/// Remembers keys, so that appends and reads need not look them up. A key may be out of date if its agent was purged:
/// who finds nothing under it looks it up.
///
/// After a failover, the new server may lack the newest agents and give their keys to others. So a key counts only on
/// the timeline on which it was read.
pub(crate) struct KnownAgents {
    known: Mutex<Known>,
    most: usize,
}

#[derive(Default)]
struct Known {
    timeline: u32,
    keys: HashMap<AgentId, i64>,
}

impl KnownAgents {
    /// Remembers at most this many.
    pub(crate) fn new(most: usize) -> Self {
        Self { known: Mutex::default(), most }
    }

    pub(crate) fn get(&self, timeline: u32, id: AgentId) -> Option<i64> {
        let known = self.lock();
        known.keys.get(&id).copied().filter(|_| known.timeline == timeline)
    }

    pub(crate) fn add(&self, timeline: u32, id: AgentId, key: i64) {
        let mut known = self.lock();
        if timeline < known.timeline {
            return;
        }
        if known.timeline < timeline || self.most <= known.keys.len() {
            // Those in use are soon known again.
            known.keys.clear();
        }
        known.timeline = timeline;
        known.keys.insert(id, key);
    }

    pub(crate) fn forget(&self, id: AgentId) {
        self.lock().keys.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
