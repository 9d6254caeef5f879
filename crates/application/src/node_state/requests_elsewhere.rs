//! How far the permission requests of other nodes' agents have been read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{AgentId, Sequence, TurnNumber};

/// How far the requests of running agents of other nodes have been read.
#[derive(Default)]
pub(crate) struct RequestsElsewhere {
    read: Mutex<BTreeMap<AgentId, ReadUpTo>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadUpTo {
    pub(crate) turn: TurnNumber,
    pub(crate) sequence: Sequence,
}

impl RequestsElsewhere {
    pub(crate) fn read(&self) -> MutexGuard<'_, BTreeMap<AgentId, ReadUpTo>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
