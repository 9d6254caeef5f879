//! One-time login codes. A link can carry one, because it is worthless after its use.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::hex::hex;

/// The unused login codes. A restart of the server forgets them.
pub(crate) struct LoginCodes {
    /// Until when each can be used.
    unused: Mutex<HashMap<String, Instant>>,
    max: usize,
    age: Duration,
}

impl LoginCodes {
    /// At most `max` codes may be unused, each for at most `age`.
    pub(crate) fn new(max: usize, age: Duration) -> Self {
        Self { unused: Mutex::default(), max, age }
    }

    /// Issues a code that cannot be guessed. If too many codes are unused, the oldest one becomes invalid.
    pub(crate) fn issue(&self, random: [u8; 32]) -> String {
        let now = Instant::now();
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.retain(|_, expires| now < *expires);
        if self.max <= unused.len() {
            let oldest = unused.iter().min_by_key(|(_, expires)| **expires).map(|(code, _)| code.clone());
            oldest.map(|oldest| unused.remove(&oldest));
        }
        let code = hex(&random);
        unused.insert(code.clone(), now + self.age);
        code
    }

    /// Uses a code up. Returns whether it was valid.
    pub(crate) fn redeem(&self, code: &str) -> bool {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.remove(code).is_some_and(|expires| Instant::now() < expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_mins(10);

    #[tokio::test(start_paused = true)]
    async fn a_code_works_once_and_for_a_short_time() {
        let codes = LoginCodes::new(2, AGE);
        let code = codes.issue([1; 32]);
        assert_eq!((codes.redeem(&code), codes.redeem(&code)), (true, false));
        assert!(!codes.redeem(&"00".repeat(32)), "a guess");
        let late = codes.issue([2; 32]);
        tokio::time::advance(AGE).await;
        assert!(!codes.redeem(&late));
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_codes_work_if_there_are_too_many() {
        let codes = LoginCodes::new(2, AGE);
        let mut issued = Vec::new();
        for random in 1..=3 {
            issued.push(codes.issue([random; 32]));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(issued.iter().map(|code| codes.redeem(code)).collect::<Vec<_>>(), [false, true, true]);
    }
}
