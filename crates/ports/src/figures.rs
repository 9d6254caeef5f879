//! What a shared store and its bus have done since they were opened, for metrics.

use std::time::Duration;

/// What a shared store has done to save appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreFigures {
    /// Statements and transactions that saved appends, or tried to.
    pub writes: u64,
    /// Appends in them. Divided by `writes`, this is how many agents share one.
    pub appends: u64,
    /// The time that they took together.
    pub write_time: Duration,
    /// Of how many it was not known whether they were saved, so that they were sent again.
    pub unknown_outcomes: u64,
    pub age: StoreAge,
}

/// What grows while something keeps the database from cleaning up. Read at times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreAge {
    /// How many transactions have begun since the oldest snapshot that is in use.
    pub oldest_snapshot: u64,
    /// The age of the oldest transaction id.
    pub transaction_id: u64,
}

/// What a bus has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusFigures {
    pub sent: u64,
    pub heard: u64,
    /// How often hints may have been lost, so that this node looked at everything.
    pub missed: u64,
    /// How often this node has sent a hint to itself that arrived.
    pub checks: u64,
    /// How long all these hints were under way.
    pub check_time: Duration,
}
