//! Older events that readers have fetched from the store, shared with other readers at about the same position.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::{Event, Sequence};
use tokio::time::{Instant, sleep_until};

use crate::batch::Batch;

/// A stretch counts as in use for this long after a reader has taken a batch of it. Readers that are sending take the
/// next batch sooner.
const IN_USE: Duration = Duration::from_millis(10);

/// The stretches of one journal that were fetched or used most recently.
#[derive(Debug)]
pub(crate) struct Fetched {
    stretches: Mutex<Vec<Stretch>>,
    bytes_max: usize,
}

/// The events of one fetch.
#[derive(Debug)]
struct Stretch {
    batches: Vec<Arc<Batch>>,
    bytes: usize,
    used_at: Instant,
}

impl Stretch {
    fn batch_with(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        let after = self.batches.partition_point(|batch| batch.last() < sequence);
        self.batches.get(after).filter(|batch| batch.first() <= sequence).cloned()
    }

    /// Whether a reader that wants `sequence` still has events of this stretch ahead.
    fn reaches(&self, sequence: Sequence) -> bool {
        self.batches.last().is_some_and(|batch| sequence <= batch.last())
    }
}

impl Fetched {
    /// Holds at most `bytes_max` bytes, and the newest stretch in any case.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { stretches: Mutex::default(), bytes_max }
    }

    /// The batch that holds `sequence`.
    pub(crate) fn batch_with(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        let mut stretches = self.lock();
        stretches.iter_mut().find_map(|stretch| {
            let batch = stretch.batch_with(sequence)?;
            stretch.used_at = Instant::now();
            Some(batch)
        })
    }

    /// Keeps what a reader has fetched. Stretches are evicted as a whole, because a reader that lacks one batch
    /// fetches the whole stretch. The least recently used stretch is evicted first.
    pub(crate) fn keep(&self, events: &Arc<[Event]>) {
        let batches: Vec<_> = Batch::split(events).map(Arc::new).collect();
        let bytes = batches.iter().map(|batch| batch.bytes()).sum();
        let mut stretches = self.lock();
        while !stretches.is_empty() && self.bytes_max < held(&stretches) + bytes {
            let idle = (0..stretches.len()).min_by_key(|index| stretches[*index].used_at);
            stretches.remove(idle.unwrap_or(0));
        }
        stretches.push(Stretch { batches, bytes, used_at: Instant::now() });
    }

    /// Waits until another stretch fits, or evicts only stretches that are not in use; at most for `at_most`. This
    /// keeps readers that share a stretch together: without the wait, the first of them evicts the stretch, and the
    /// others fetch it again.
    pub(crate) async fn room(&self, at_most: Duration) {
        let latest = Instant::now() + at_most;
        while let Some(free) =
            self.free_at().map(|free| free.min(latest)).filter(|free| Instant::now() < *free)
        {
            sleep_until(free).await;
        }
    }

    /// When the stretch that the next fetch would evict is no longer in use. `None` if the next fetch evicts nothing.
    fn free_at(&self) -> Option<Instant> {
        let stretches = self.lock();
        let next = stretches.last()?.bytes;
        if held(&stretches) + next <= self.bytes_max {
            return None;
        }
        stretches.iter().map(|stretch| stretch.used_at).min().map(|used_at| used_at + IN_USE)
    }

    /// Whether the stretches that a reader at `sequence` has not finished fit twice: then a prefetch evicts none of
    /// them.
    pub(crate) fn has_room_ahead(&self, sequence: Sequence) -> bool {
        let stretches = self.lock();
        let unread = stretches.iter().filter(|stretch| stretch.reaches(sequence));
        2 * unread.map(|stretch| stretch.bytes).sum::<usize>() <= self.bytes_max
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Stretch>> {
        self.stretches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held(stretches: &[Stretch]) -> usize {
    stretches.iter().map(|stretch| stretch.bytes).sum()
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{EventBody, JsonText, Notice, Timestamp, TurnNumber};

    use super::*;

    const AT_MOST: Duration = Duration::from_millis(50);

    /// Ten events, from `first` on.
    fn ten_from(first: u64) -> Arc<[Event]> {
        let event = |sequence| Event {
            sequence: Sequence(sequence),
            at: Timestamp(1),
            turn: TurnNumber::FIRST,
            body: EventBody::Notice(Box::new(Notice {
                subtype: "a".to_owned(),
                data: JsonText::new_unchecked("{}"),
            })),
            raw: None,
        };
        (first..first + 10).map(event).collect()
    }

    /// Room for two stretches, both filled.
    fn two() -> Fetched {
        let bytes = Batch::split(&ten_from(1)).map(|batch| batch.bytes()).sum::<usize>();
        let fetched = Fetched::new(2 * bytes);
        fetched.keep(&ten_from(1));
        fetched.keep(&ten_from(11));
        fetched
    }

    fn holds(fetched: &Fetched) -> Vec<u64> {
        [1, 11, 21].into_iter().filter(|first| fetched.batch_with(Sequence(*first)).is_some()).collect()
    }

    async fn waits(fetched: &Fetched) -> Duration {
        let begin = Instant::now();
        fetched.room(AT_MOST).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_used_for_longest_goes_first() {
        let fetched = two();
        tokio::time::advance(IN_USE).await;
        assert!(fetched.batch_with(Sequence(5)).is_some());
        fetched.keep(&ten_from(21));
        assert_eq!(holds(&fetched), [1, 21]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stretch_that_is_larger_than_the_room_is_kept_alone() {
        let fetched = Fetched::new(1);
        fetched.keep(&ten_from(1));
        assert_eq!(holds(&fetched), [1]);
        fetched.keep(&ten_from(11));
        assert_eq!(holds(&fetched), [11]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_waits_until_nobody_uses_what_it_pushes_out() {
        let fetched = two();
        assert_eq!(waits(&fetched).await, IN_USE);
        assert_eq!(waits(&fetched).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_with_room_waits_for_nobody() {
        let fetched = Fetched::new(usize::MAX);
        fetched.keep(&ten_from(1));
        assert_eq!(waits(&fetched).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_that_read_on_are_not_waited_for_without_end() {
        let fetched = two();
        let read_on = async {
            loop {
                holds(&fetched);
                tokio::time::sleep(IN_USE / 2).await;
            }
        };
        tokio::select! {
            () = read_on => {}
            waited = waits(&fetched) => assert_eq!(waited, AT_MOST),
        }
    }
}
