//! Older events that readers have fetched from the store, shared with other readers at about the same position.

use std::collections::VecDeque;
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
pub(crate) struct StretchCache {
    stretches: Mutex<Vec<Stretch>>,
    bytes_max: usize,
}

/// The events of one fetch.
#[derive(Debug)]
struct Stretch {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
    used_at: Instant,
}

impl Stretch {
    fn batch_with(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        let after = self.batches.partition_point(|batch| batch.last() < sequence);
        self.batches.get(after).filter(|batch| batch.first() <= sequence).cloned()
    }

    /// The bytes that a reader at `sequence` has not read.
    fn unread_bytes(&self, sequence: Sequence) -> usize {
        self.batches.iter().filter(|batch| sequence <= batch.last()).map(|batch| batch.bytes()).sum()
    }

    fn first(&self) -> Option<Sequence> {
        self.batches.front().map(|batch| batch.first())
    }

    fn last(&self) -> Option<Sequence> {
        self.batches.back().map(|batch| batch.last())
    }

    /// Whether all of it is in `other`, too.
    fn is_within(&self, other: &Self) -> bool {
        other.first() <= self.first() && self.last() <= other.last()
    }

    fn drop_first(&mut self) {
        self.bytes -= self.batches.pop_front().map_or(0, |batch| batch.bytes());
    }

    fn drop_last(&mut self) {
        self.bytes -= self.batches.pop_back().map_or(0, |batch| batch.bytes());
    }

    /// Cuts what does not fit: first what is before `wanted`, then the end. The batch with `wanted` stays.
    fn cut(&mut self, wanted: Sequence, bytes_max: usize) {
        while bytes_max < self.bytes && self.batches.front().is_some_and(|batch| batch.last() < wanted) {
            self.drop_first();
        }
        while bytes_max < self.bytes && 1 < self.batches.len() {
            self.drop_last();
        }
    }
}

impl StretchCache {
    /// Holds at most `bytes_max` bytes, and one batch in any case.
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

    /// Keeps what a reader that wants `wanted` has fetched. Evicts batches of the least recently used stretch, from its
    /// beginning, because its readers are past that.
    pub(crate) fn keep(&self, events: &Arc<[Event]>, wanted: Sequence) {
        let batches: VecDeque<_> = Batch::split(events).map(Arc::new).collect();
        let bytes = batches.iter().map(|batch| batch.bytes()).sum();
        let mut newest = Stretch { batches, bytes, used_at: Instant::now() };
        newest.cut(wanted, self.bytes_max);
        let mut stretches = self.lock();
        // What is left of an earlier fetch of these events.
        stretches.retain(|stretch| !stretch.is_within(&newest));
        while self.bytes_max < held(&stretches) + newest.bytes {
            let Some(idle) = stretches.iter_mut().min_by_key(|stretch| stretch.used_at) else { break };
            idle.drop_first();
            stretches.retain(|stretch| !stretch.batches.is_empty());
        }
        stretches.push(newest);
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

    /// Whether what a reader at `sequence` has not read fits twice: then a prefetch evicts none of it.
    pub(crate) fn has_room_ahead(&self, sequence: Sequence) -> bool {
        let unread: usize = self.lock().iter().map(|stretch| stretch.unread_bytes(sequence)).sum();
        2 * unread <= self.bytes_max
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
    use super::*;
    use crate::batch::testing::notices;

    const AT_MOST: Duration = Duration::from_millis(50);

    /// Ten events, from `first` on.
    fn ten_from(first: u64) -> Arc<[Event]> {
        notices(first..first + 10)
    }

    fn keep(cache: &StretchCache, first: u64) {
        cache.keep(&ten_from(first), Sequence(first));
    }

    /// Room for two stretches, both filled.
    fn two() -> StretchCache {
        let bytes = Batch::split(&ten_from(1)).map(|batch| batch.bytes()).sum::<usize>();
        let cache = StretchCache::new(2 * bytes);
        keep(&cache, 1);
        keep(&cache, 11);
        cache
    }

    fn holds(cache: &StretchCache) -> Vec<u64> {
        [1, 11, 21].into_iter().filter(|first| cache.batch_with(Sequence(*first)).is_some()).collect()
    }

    async fn waits(cache: &StretchCache) -> Duration {
        let begin = Instant::now();
        cache.room(AT_MOST).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_used_for_longest_goes_first() {
        let cache = two();
        tokio::time::advance(IN_USE).await;
        assert!(cache.batch_with(Sequence(5)).is_some());
        keep(&cache, 21);
        assert_eq!(holds(&cache), [1, 21]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_what_does_not_fit_the_part_from_the_wanted_event_on_is_kept() {
        // Four batches.
        let events: Arc<[Event]> =
            (1..=2000).step_by(10).flat_map(|first| ten_from(first).to_vec()).collect();
        let batch = Batch::split(&events).next().map_or(0, |batch| batch.bytes());
        for (batches, wanted, held) in
            [(4, 1, 1..=2000), (2, 600, 513..=1536), (1, 1100, 1025..=1536), (0, 2000, 1537..=2000)]
        {
            let cache = StretchCache::new(batches * batch);
            cache.keep(&events, Sequence(wanted));
            let found = (1..=2000).filter(|number| cache.batch_with(Sequence(*number)).is_some());
            assert_eq!(found.collect::<Vec<_>>(), held.collect::<Vec<_>>(), "room for {batches} batches");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_evicted_is_what_readers_have_passed() {
        let events: Arc<[Event]> =
            (1..=2000).step_by(10).flat_map(|first| ten_from(first).to_vec()).collect();
        let bytes: usize = Batch::split(&events).map(|batch| batch.bytes()).sum();
        let cache = StretchCache::new(bytes);
        cache.keep(&events, Sequence(1));
        keep(&cache, 2001);
        assert!(cache.batch_with(Sequence(1)).is_none());
        for number in [513, 2000, 2001] {
            assert!(cache.batch_with(Sequence(number)).is_some(), "{number}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_fetched_again_takes_no_room_twice() {
        let cache = two();
        for _ in 0..5 {
            keep(&cache, 1);
        }
        assert_eq!(holds(&cache), [1, 11]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_larger_than_the_room_is_kept_alone() {
        let cache = StretchCache::new(1);
        keep(&cache, 1);
        assert_eq!(holds(&cache), [1]);
        keep(&cache, 11);
        assert_eq!(holds(&cache), [11]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_waits_until_nobody_uses_what_it_pushes_out() {
        let cache = two();
        assert_eq!(waits(&cache).await, IN_USE);
        assert_eq!(waits(&cache).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_with_room_waits_for_nobody() {
        let cache = StretchCache::new(usize::MAX);
        keep(&cache, 1);
        assert_eq!(waits(&cache).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_that_read_on_are_not_waited_for_without_end() {
        let cache = two();
        let read_on = async {
            loop {
                holds(&cache);
                tokio::time::sleep(IN_USE / 2).await;
            }
        };
        tokio::select! {
            () = read_on => {}
            waited = waits(&cache) => assert_eq!(waited, AT_MOST),
        }
    }
}
