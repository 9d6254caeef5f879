//! Time and randomness.

use tokenrail_domain::Timestamp;

/// Tells the time of day. It may jump; durations are measured by the async runtime, not by this.
pub trait IClock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// Returns random bytes that cannot be predicted.
pub trait IRandom: Send + Sync {
    fn bytes(&self) -> [u8; 10];
}
