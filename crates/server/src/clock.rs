//! The clock and the random source of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::rand::{GetRandomFlags, getrandom};
use tokenrail_domain::Timestamp;
use tokenrail_ports::{IClock, IRandom};

/// The clock of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl IClock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter that everybody else asks")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The kernel's random bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemRandom;

impl SystemRandom {
    /// Fills a buffer with random bytes. The kernel fills up to 256 bytes in one call.
    ///
    /// # Errors
    /// The kernel's error, if it has no random bytes.
    pub(crate) fn fill(buffer: &mut [u8]) -> std::io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += getrandom(&mut buffer[filled..], GetRandomFlags::empty())?;
        }
        Ok(())
    }
}

impl IRandom for SystemRandom {
    fn bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        // If the kernel has returned random bytes before, only an interrupted call can fail.
        while Self::fill(&mut bytes).is_err() {
            std::thread::yield_now();
        }
        bytes
    }
}
