//! The places at which `--cfg planted_bugs` breaks the stores on purpose, to prove that tests find it: see
//! `cargo xtask planted-bugs`. In every other build these functions do nothing.

/// Makes the bug that is active in this thread also active in `work`, which runs in another thread.
pub(crate) fn passed_on<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    #[cfg(planted_bugs)]
    let work = tokenrail_ports::planted::passed_on(work);
    work
}

/// Whether SQLite's writer always takes large writes before small ones.
pub(crate) fn flood_goes_first() -> bool {
    #[cfg(planted_bugs)]
    return tokenrail_ports::planted::is_planted(tokenrail_ports::planted::Bug::FloodGoesFirst);
    #[cfg(not(planted_bugs))]
    false
}

/// A bug of the store on PostgreSQL. The simulation has no PostgreSQL, so tests on a real server find these. The
/// variable `TOKENRAIL_PLANTED_BUG` names the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostgresBug {
    /// An answer with a warning counts as saved. The wait for a standby may have been cancelled.
    WarningIsSuccess,
    /// What is visible counts as durable.
    NoBarrier,
    /// A ticket remains valid after its use.
    TicketTwice,
    /// What another node has shown before a failover is forgotten, so its numbers are given to other events.
    TailReused,
    /// A batch that compaction has made of read and unread events is skipped.
    GatherSkipsCompacted,
}

#[cfg(planted_bugs)]
pub(crate) fn is_planted(bug: PostgresBug) -> bool {
    static ACTIVE: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("TOKENRAIL_PLANTED_BUG").ok());
    ACTIVE.as_ref().is_some_and(|active| *active == format!("{bug:?}"))
}

#[cfg(not(planted_bugs))]
pub(crate) const fn is_planted(_: PostgresBug) -> bool {
    false
}
