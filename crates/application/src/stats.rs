//! Counters of the application, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokenrail_ports::{BusFigures, Failovers, NodeState, StoreFigures};

/// Counters of the application, from its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) events_saved: AtomicU64,
    pub(crate) batches_saved: AtomicU64,
    pub(crate) write_retries: AtomicU64,
    pub(crate) turns_started: AtomicU64,
    pub(crate) turns_ended: AtomicU64,
    pub(crate) invariant_violations: AtomicU64,
    pub(crate) turns_of_lost_nodes: AtomicU64,
    pub(crate) events_gathered: AtomicU64,
    pub(crate) poll_found: AtomicU64,
    pub(crate) errands: AtomicU64,
    pub(crate) letters: AtomicU64,
    pub(crate) fenced_writes: AtomicU64,
    pub(crate) gathers: AtomicU64,
    pub(crate) gather_us: AtomicU64,
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
    pub nodes: NodeStats,
}

/// What this node knows of the nodes of a shared store, and what it has done because of them. All values are 0 on a
/// store that cannot be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStats {
    /// How many nodes there are in each state, in the order of [`NodeState::ALL`].
    pub by_state: [u64; NodeState::ALL.len()],
    /// How long ago this node sent its newest beat that was answered.
    pub beat_age: Duration,
    /// Turns that this node has ended because their node was lost.
    pub turns_of_lost_nodes: u64,
    /// Events of other nodes' agents that were read for followers here.
    pub events_gathered: u64,
    /// Journals that a look at the store has found to be ahead of all hints.
    pub poll_found: u64,
    /// Agents' tasks and purges that this node has started because another node had saved a command.
    pub errands: u64,
    /// Permission answers and dismissals from other nodes that this node has replied to.
    pub letters: u64,
    /// Writes of this node that were refused, because another node had taken the agent over.
    pub fenced_writes: u64,
    /// Reads of events of other nodes' agents, and the time that they took together.
    pub gathers: u64,
    pub gather_time: Duration,
    pub store: StoreFigures,
    pub bus: BusFigures,
    pub failovers: Failovers,
}
