//! How long an agent's writes have failed because the disk is full.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Since when the writes of one agent have failed because the disk is full. Other agents may have found space
/// meanwhile.
#[derive(Debug, Default)]
pub(crate) struct FullSince {
    since: Mutex<Option<Full>>,
    /// How long writes may wait for space. Not set if they may wait for ever.
    patience: OnceLock<Duration>,
}

impl FullSince {
    /// Notes that a write failed because the disk is full. Returns true if the agent must not wait any longer.
    pub(crate) fn note_full(&self) -> bool {
        let mut since = self.since();
        let full = since.get_or_insert_with(Full::begin);
        full.go_on();
        self.patience.get().is_some_and(|patience| *patience <= full.elapsed())
    }

    /// Notes that a write failed for another reason. It is unknown whether there is space, so this time does not
    /// count.
    pub(crate) fn note_unknown(&self) {
        if let Some(full) = &mut *self.since() {
            full.unknown_since.get_or_insert_with(Instant::now);
        }
    }

    pub(crate) fn note_room(&self) {
        *self.since() = None;
    }

    /// Bounds the wait for space, counted from its beginning.
    pub(crate) fn bound(&self, patience: Duration) {
        // The first bound stays.
        let _ = self.patience.set(patience);
    }

    fn since(&self) -> MutexGuard<'_, Option<Full>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the disk has been full. `None` if the last write succeeded.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.since().map(|full| full.elapsed())
    }
}

/// A period in which the disk is full. Times in which that is unknown are left out.
#[derive(Debug, Clone, Copy)]
struct Full {
    since: Instant,
    unknown_since: Option<Instant>,
}

impl Full {
    fn begin() -> Self {
        Self { since: Instant::now(), unknown_since: None }
    }

    /// Notes that the disk is known to be full again.
    fn go_on(&mut self) {
        if let Some(unknown_since) = self.unknown_since.take() {
            self.since += unknown_since.elapsed();
        }
    }

    fn elapsed(&self) -> Duration {
        self.unknown_since.unwrap_or_else(Instant::now).saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn only_the_time_counts_in_which_the_disk_is_known_to_be_full() {
        let full = FullSince::default();
        full.bound(3 * MINUTE);
        assert!(!full.note_full());
        tokio::time::advance(MINUTE).await;
        full.note_unknown();
        tokio::time::advance(60 * MINUTE).await;
        full.note_unknown();
        assert_eq!(full.elapsed(), Some(MINUTE));
        assert!(!full.note_full(), "in an hour nobody knew");
        tokio::time::advance(2 * MINUTE).await;
        assert!(full.note_full());
    }
}
