//! How often something may happen.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: holds as many tokens as come in a minute, and is full at first.
pub(crate) struct TokenBucket {
    per_minute: f64,
    state: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = f64::from(per_minute.max(1));
        Self { per_minute, state: Mutex::new((per_minute, Instant::now())) }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long it takes until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = *state;
        let now = Instant::now();
        let tokens = (tokens + (now - at).as_secs_f64() * self.per_minute / 60.0).min(self.per_minute);
        if 1.0 <= tokens {
            *state = (tokens - 1.0, now);
            return Ok(());
        }
        *state = (tokens, now);
        Err(Duration::from_secs_f64((1.0 - tokens) * 60.0 / self.per_minute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_bucket_gives_its_tokens_at_once_and_then_one_by_one() {
        let bucket = TokenBucket::new(60);
        for _ in 0..60 {
            assert_eq!(bucket.take(), Ok(()));
        }
        assert_eq!(bucket.take(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_millis(1001)).await;
        assert_eq!(bucket.take(), Ok(()));
        assert!(bucket.take().is_err());
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(
            (0..100).filter(|_| bucket.take().is_ok()).count(),
            60,
            "it never holds more than a minute's"
        );
    }
}
