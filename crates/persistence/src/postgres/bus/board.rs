//! What the callers, the sender and the listener of a bus share: hints in both directions, and how the bus is.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokenrail_ports::BusFigures;
use uuid::Uuid;

use super::incoming::Incoming;
use super::lock;
use super::outgoing::Outgoing;
use crate::postgres::config::PostgresLimits;

/// Hints in both directions, and how the bus is.
pub(super) struct Board {
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// `None` until it is known.
    works: Mutex<Option<bool>>,
    /// For metrics.
    checks: AtomicU64,
    /// For metrics.
    check_us: AtomicU64,
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("works", &self.works).finish_non_exhaustive()
    }
}

impl Board {
    pub(super) fn new(limits: &PostgresLimits) -> Self {
        // Random: no other bus has it.
        let own = Uuid::now_v7();
        Self {
            outgoing: Outgoing::new(own, limits),
            incoming: Incoming::new(own, limits.hints),
            works: Mutex::new(None),
            checks: AtomicU64::new(0),
            check_us: AtomicU64::new(0),
        }
    }

    pub(super) fn works(&self) -> bool {
        *lock(&self.works) == Some(true)
    }

    pub(super) fn set_works(&self, works: bool) {
        if lock(&self.works).replace(works) == Some(works) {
            return;
        }
        if works {
            tracing::info!("hints from other nodes arrive");
        } else {
            tracing::warn!(
                "hints from other nodes do not arrive; until they do, this node reads the database more often"
            );
        }
    }

    /// Sends a hint to this node itself, and waits until it arrives.
    pub(super) async fn check(&self) {
        let begun = Instant::now();
        self.incoming.until_checked(self.outgoing.add_check()).await;
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.checks.fetch_add(1, Ordering::Relaxed);
        self.check_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> BusFigures {
        BusFigures {
            sent: self.outgoing.sent(),
            heard: self.incoming.hints_heard(),
            missed: self.incoming.times_missed(),
            checks: self.checks.load(Ordering::Relaxed),
            check_time: Duration::from_micros(self.check_us.load(Ordering::Relaxed)),
        }
    }
}
