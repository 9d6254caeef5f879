//! What the writers have done, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokenrail_ports::{StoreAge, StoreFigures};

/// Counters of all writers of a store.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    writes: AtomicU64,
    appends: AtomicU64,
    write_us: AtomicU64,
    unknown_outcomes: AtomicU64,
    oldest_snapshot: AtomicU64,
    transaction_id_age: AtomicU64,
    /// When the ages were read last.
    aged_at: Mutex<Option<Instant>>,
}

/// How often the ages are read.
const AGE_EVERY: Duration = Duration::from_mins(1);

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

    /// Whether the ages are to be read now. The next ones are due a while later, whatever becomes of these.
    pub(crate) fn is_age_due(&self, now: Instant) -> bool {
        let mut aged_at = self.aged_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = aged_at.is_none_or(|at| AGE_EVERY <= now.duration_since(at));
        if is_due {
            *aged_at = Some(now);
        }
        is_due
    }

    pub(crate) fn note_age(&self, age: StoreAge) {
        self.oldest_snapshot.store(age.oldest_snapshot, Ordering::Relaxed);
        self.transaction_id_age.store(age.transaction_id, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StoreFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreFigures {
            writes: read(&self.writes),
            appends: read(&self.appends),
            write_time: Duration::from_micros(read(&self.write_us)),
            unknown_outcomes: read(&self.unknown_outcomes),
            age: StoreAge {
                oldest_snapshot: read(&self.oldest_snapshot),
                transaction_id: read(&self.transaction_id_age),
            },
        }
    }
}
