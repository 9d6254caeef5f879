//! How much there is to move.

/// How much was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveCounts {
    pub agents: u64,
    /// Of these agents, how many have a turn that runs or waits. The next server continues them.
    pub open_agents: u64,
    pub turns: u64,
    pub events: u64,
    pub images: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// Ids of purged agents.
    pub purged: u64,
}

/// A statement that both databases understand.
pub(super) const COUNTS: &str = "
    SELECT (SELECT count(*) FROM agents), (SELECT count(DISTINCT agent) FROM turns WHERE state <> 'ended'),
        (SELECT count(*) FROM turns), (SELECT CAST(coalesce(sum(head), 0) AS bigint) FROM heads),
        (SELECT count(*) FROM prompt_images), (SELECT count(*) FROM idempotency), (SELECT count(*) FROM tombstones)";

impl MoveCounts {
    /// From the columns of [`COUNTS`].
    pub(super) fn of<E>(column: impl Fn(usize) -> Result<i64, E>) -> Result<Self, E> {
        let count = |at| column(at).map(i64::unsigned_abs);
        Ok(Self {
            agents: count(0)?,
            open_agents: count(1)?,
            turns: count(2)?,
            events: count(3)?,
            images: count(4)?,
            keys: count(5)?,
            purged: count(6)?,
        })
    }
}
