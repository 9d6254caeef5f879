//! Counters of the application, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the application, from its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) events_saved: AtomicU64,
    pub(crate) batches_saved: AtomicU64,
    pub(crate) write_retries: AtomicU64,
    pub(crate) turns_started: AtomicU64,
    pub(crate) turns_ended: AtomicU64,
    pub(crate) invariant_violations: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// What the application has done, and what it holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    pub events_saved: u64,
    pub batches_saved: u64,
    /// Failed writes that were retried.
    pub write_retries: u64,
    pub turns_started: u64,
    pub turns_ended: u64,
    /// Writes that contradicted the journal, and panics of agents' tasks. Each has ended its agent's turn or task.
    /// Always 0, unless the server has a bug.
    pub invariant_violations: u64,
    /// Agents that run or wait.
    pub active_agents: u64,
    pub followers: u64,
    /// Bytes of newest events held in memory.
    pub tail_bytes: u64,
    /// Tasks of the server that have not ended; those of connections are not counted.
    pub tasks: u64,
}
