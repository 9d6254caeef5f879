//! The keys of agents, by their ids.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::AgentId;

/// Remembers keys, so that appends and reads need not look them up. A key may be out of date if its agent was purged:
/// who finds nothing under it looks it up.
pub(crate) struct KnownAgents {
    keys: Mutex<HashMap<AgentId, i64>>,
    most: usize,
}

impl KnownAgents {
    /// Remembers at most this many.
    pub(crate) fn new(most: usize) -> Self {
        Self { keys: Mutex::new(HashMap::new()), most }
    }

    pub(crate) fn get(&self, id: AgentId) -> Option<i64> {
        self.lock().get(&id).copied()
    }

    pub(crate) fn add(&self, id: AgentId, key: i64) {
        let mut keys = self.lock();
        if self.most <= keys.len() {
            // Those in use are soon known again.
            keys.clear();
        }
        keys.insert(id, key);
    }

    pub(crate) fn forget(&self, id: AgentId) {
        self.lock().remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, i64>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
