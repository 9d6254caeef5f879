//! The followers of one journal set its pace: while they are the bottleneck, batches grow.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::Sequence;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An agent floods if this many events arrive while one batch is delivered.
const FLOOD_EVENTS: usize = 16;
/// In a flood, the time from one batch to the next is this many times the time of a delivery. This leaves most of the
/// processor to the agent and to saving its output.
const ROUNDS: u32 = 10;

/// Counts the followers that have taken the newest batch, and compares them with those that took the one before it.
///
/// Each batch costs a wake-up and a write per follower. If batches are announced as soon as the followers take them,
/// that cost is paid again and again for a few events. So the pump waits until most of the followers that took the
/// last batch have taken the newest one, and in a flood a little longer. It collects events meanwhile. If a follower
/// does not read, the pump waits for it once, and then no longer counts it.
#[derive(Debug)]
pub(crate) struct FollowerPace {
    /// The newest event of the newest batch.
    head: AtomicU64,
    /// Followers that have taken it.
    served: AtomicUsize,
    /// Followers that had taken the batch before it when this one was announced.
    expected: AtomicUsize,
    round: Mutex<Round>,
    enough: Notify,
}

/// How long the delivery of the newest batch takes.
#[derive(Debug, Clone, Copy)]
struct Round {
    announced_at: Instant,
    /// `None` while the delivery is under way.
    took: Option<Duration>,
}

impl FollowerPace {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            served: AtomicUsize::new(0),
            expected: AtomicUsize::new(0),
            round: Mutex::new(Round { announced_at: Instant::now(), took: None }),
            enough: Notify::new(),
        }
    }

    /// Notes that a batch that ends with `head` is about to be announced.
    pub(crate) fn announce(&self, head: Sequence) {
        *self.round() = Round { announced_at: Instant::now(), took: None };
        self.head.store(head.0, Ordering::Relaxed);
        self.expected.store(self.served.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes that a follower has taken everything up to `cursor`.
    pub(crate) fn serve(&self, cursor: Sequence) {
        if cursor.0 != self.head.load(Ordering::Relaxed) {
            return;
        }
        let served = self.served.fetch_add(1, Ordering::Relaxed) + 1;
        if served == most(self.expected.load(Ordering::Relaxed)) {
            let mut round = self.round();
            round.took = Some(round.announced_at.elapsed());
            self.enough.notify_one();
        }
    }

    /// Returns when the next batch should be saved or announced. `None` if it need not wait, or if fewer than `from`
    /// followers have kept up. `pending`: its events so far. `at_most`: the longest wait after the last announcement.
    pub(crate) fn wants_until(&self, pending: usize, from: usize, at_most: Duration) -> Option<Instant> {
        let expected = self.expected.load(Ordering::Relaxed);
        if expected < from {
            return None;
        }
        let Round { announced_at, took } = *self.round();
        let wait = match took {
            None => at_most,
            Some(took) if FLOOD_EVENTS <= pending => at_most.min(ROUNDS * took),
            Some(_) => return None,
        };
        Some(announced_at + wait)
    }

    /// Waits until the followers have taken the newest batch.
    pub(crate) async fn caught_up(&self) {
        self.enough.notified().await;
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seven of eight, because a few may be slow.
fn most(followers: usize) -> usize {
    followers - followers / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MOST: Duration = Duration::from_millis(10);
    const FROM: usize = 8;

    /// The next batch is announced after this many followers have taken the one before it.
    fn after(followers: usize) -> FollowerPace {
        let pace = FollowerPace::new();
        pace.announce(Sequence(1));
        serve(&pace, 1, followers);
        pace.announce(Sequence(2));
        pace
    }

    fn serve(pace: &FollowerPace, head: u64, followers: usize) {
        for _ in 0..followers {
            pace.serve(Sequence(head));
        }
    }

    fn waits(pace: &FollowerPace, pending: usize) -> Option<Duration> {
        let now = Instant::now();
        pace.wants_until(pending, FROM, AT_MOST).map(|until| until - now).filter(|wait| !wait.is_zero())
    }

    #[tokio::test(start_paused = true)]
    async fn seven_of_eight_of_those_who_kept_up_are_waited_for() {
        let pace = after(16);
        serve(&pace, 2, 13);
        assert_eq!(waits(&pace, 1), Some(AT_MOST));
        serve(&pace, 2, 1);
        assert_eq!(waits(&pace, 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_waits_ten_times_as_long_as_its_delivery_took() {
        let pace = after(16);
        tokio::time::advance(Duration::from_micros(500)).await;
        serve(&pace, 2, 16);
        assert_eq!(waits(&pace, FLOOD_EVENTS - 1), None, "no flood");
        assert_eq!(waits(&pace, FLOOD_EVENTS), Some(Duration::from_micros(4500)));
        tokio::time::advance(Duration::from_micros(4500)).await;
        assert_eq!(waits(&pace, FLOOD_EVENTS), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_bound_holds_however_long_a_delivery_took() {
        let pace = after(16);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(waits(&pace, 1), None);
        serve(&pace, 2, 16);
        assert_eq!(waits(&pace, FLOOD_EVENTS), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_followers_are_not_waited_for() {
        assert_eq!(waits(&after(FROM - 1), 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_a_batch_is_not_waited_for_again() {
        let pace = after(16);
        serve(&pace, 2, 9);
        pace.announce(Sequence(3));
        serve(&pace, 3, 9);
        assert_eq!(waits(&pace, 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_at_the_end_is_not_counted() {
        let pace = FollowerPace::new();
        pace.announce(Sequence(8));
        serve(&pace, 5, 100);
        pace.announce(Sequence(9));
        assert_eq!(waits(&pace, 1), None);
    }
}
