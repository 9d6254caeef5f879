//! The places at which `--cfg planted_bugs` breaks the store on purpose, to prove that the simulation finds it. In
//! every other build these functions do nothing.

/// Makes the bug that is active in this thread also active in `work`, which runs in another thread.
pub(crate) fn passed_on<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    #[cfg(planted_bugs)]
    let work = tokenrail_ports::planted::passed_on(work);
    work
}

/// Whether large writes always go before small ones.
pub(crate) fn flood_goes_first() -> bool {
    #[cfg(planted_bugs)]
    return tokenrail_ports::planted::is_planted(tokenrail_ports::planted::Bug::FloodGoesFirst);
    #[cfg(not(planted_bugs))]
    false
}
