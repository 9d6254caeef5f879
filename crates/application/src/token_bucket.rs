//! Limits how often something may happen.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket. It holds the tokens of one minute, and is full at first.
#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    per_minute: f64,
    tokens: f64,
    filled_at: Instant,
}

impl TokenBucket {
    pub fn full(per_minute: u32) -> Self {
        let per_minute = f64::from(per_minute.max(1));
        Self { per_minute, tokens: per_minute, filled_at: Instant::now() }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time until the next token, if there is none now.
    pub fn take(&mut self) -> Result<(), Duration> {
        let now = Instant::now();
        self.tokens = self.tokens_at(now);
        self.filled_at = now;
        if 1.0 <= self.tokens {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) * 60.0 / self.per_minute))
    }

    /// Whether no token is missing.
    pub fn is_full(&self) -> bool {
        self.per_minute <= self.tokens_at(Instant::now())
    }

    /// When a token was last requested.
    pub fn last_asked(&self) -> Instant {
        self.filled_at
    }

    fn tokens_at(&self, now: Instant) -> f64 {
        let came = (now - self.filled_at).as_secs_f64() * self.per_minute / 60.0;
        (self.tokens + came).min(self.per_minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_bucket_gives_its_tokens_at_once_and_then_one_by_one() {
        let mut bucket = TokenBucket::full(60);
        for _ in 0..60 {
            assert_eq!(bucket.take(), Ok(()));
        }
        assert_eq!(bucket.take(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_millis(1001)).await;
        assert_eq!(bucket.take(), Ok(()));
        assert!(bucket.take().is_err());
        tokio::time::advance(Duration::from_hours(1)).await;
        assert!(bucket.is_full());
        let taken = (0..100).filter(|_| bucket.take().is_ok()).count();
        assert_eq!(taken, 60, "it never holds more than those of a minute");
    }
}
