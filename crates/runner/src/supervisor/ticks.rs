//! A timer of the kernel.
//!
//! A timer of the async runtime wakes the supervisor twice for each tick, and setting it again writes to a descriptor.
//! With a thousand supervisors that uses a whole core.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Ticks at regular intervals.
pub(super) struct Ticks {
    timer: AsyncFd<OwnedFd>,
    period: Duration,
}

impl Ticks {
    /// # Errors
    /// If no descriptor is left.
    pub(super) fn every(period: Duration) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC))?;
        set(&timer, period)?;
        #[expect(deprecated, reason = "the descriptor is owned here, and closed by nobody else")]
        AsyncFd::new(timer).map(|timer| Self { timer, period })
    }

    /// Sets another period, which begins now.
    ///
    /// # Errors
    /// If the period is longer than the kernel's clock.
    pub(super) fn set(&mut self, period: Duration) -> io::Result<()> {
        if self.period != period {
            set(self.timer.get_ref(), period)?;
            self.period = period;
        }
        Ok(())
    }

    /// Waits for the next tick. Missed ticks count as one.
    pub(super) async fn tick(&self) {
        loop {
            // It fails if the runtime ends. Then nothing waits for ticks any more.
            let Ok(mut ready) = self.timer.readable().await else { return std::future::pending().await };
            if rustix::io::read(&self.timer, &mut [0; 8]).is_ok() {
                return;
            }
            ready.clear_ready();
        }
    }
}

fn set(timer: &OwnedFd, period: Duration) -> io::Result<()> {
    let every = Timespec::try_from(period).map_err(io::Error::other)?;
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: every, it_value: every })?;
    Ok(())
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

    #[tokio::test]
    async fn a_shorter_period_counts_from_now_on() {
        let mut ticks = Ticks::every(Duration::from_hours(1)).unwrap();
        ticks.set(Duration::from_millis(1)).unwrap();
        ticks.tick().await;
    }
}
