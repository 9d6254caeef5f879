//! What the writers have done, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokenrail_ports::StoreFigures;

/// Counters of all writers of a store.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    writes: AtomicU64,
    appends: AtomicU64,
    write_us: AtomicU64,
    unknown_outcomes: AtomicU64,
}

impl Figures {
    /// A write that began at this time has ended, however it did.
    pub(crate) fn count(&self, appends: usize, begun: Instant) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.appends.fetch_add(appends as u64, Ordering::Relaxed);
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.write_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn count_unknown(&self) {
        self.unknown_outcomes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StoreFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreFigures {
            writes: read(&self.writes),
            appends: read(&self.appends),
            write_time: Duration::from_micros(read(&self.write_us)),
            unknown_outcomes: read(&self.unknown_outcomes),
        }
    }
}
