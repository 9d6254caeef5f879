//! A timer of the kernel's own.
//!
//! A timer of the runtime wakes the supervisor twice for each tick, and is set anew by a write to a descriptor. With a
//! thousand supervisors that is a core's time.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Ticks at equal distances from when it was made.
pub(super) struct Ticks(AsyncFd<OwnedFd>);

impl Ticks {
    /// # Errors
    /// Where no descriptor is left.
    pub(super) fn every(period: Duration) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC))?;
        let every = Timespec::try_from(period).map_err(io::Error::other)?;
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: every, it_value: every },
        )?;
        #[expect(deprecated, reason = "the descriptor is owned here, and closed by nobody else")]
        AsyncFd::new(timer).map(Self)
    }

    /// Waits for the next tick. Those that have passed unheard are one.
    pub(super) async fn tick(&self) {
        loop {
            // It fails where the runtime ends, and then nothing is waited for any more.
            let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
            if rustix::io::read(&self.0, &mut [0; 8]).is_ok() {
                return;
            }
            ready.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_ticks_again_and_again() {
        let ticks = Ticks::every(Duration::from_millis(1)).unwrap();
        for _ in 0..3 {
            ticks.tick().await;
        }
    }
}
