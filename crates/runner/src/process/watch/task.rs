//! The task that waits for inotify, and wakes the runs that it reports.
//!
//! It is a task and not a thread because the runs are tasks. The worker that receives an event from inotify usually
//! reads the run's output next. A thread would first have to wake that worker.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::gather::{Gathered, Unread};
use super::{Inotify, Shared};

/// The longest pause, as a multiple of the pause after a single run.
const PAUSES_MAX: usize = 4;

/// The shortest time between a pass that has woken so many runs at once, and the next pass.
///
/// Each pass costs the server several wake-ups and a transaction, however many runs it wakes. If many agents print at
/// the same time, longer pauses share this cost among more of them. One or two agents do not wait longer.
fn pause_after(woken: usize, run_gather: Duration) -> Duration {
    match woken {
        0 => Duration::ZERO,
        _ => run_gather * (woken - 1).clamp(1, PAUSES_MAX) as u32,
    }
}

/// Starts the task. It ends when the handle is dropped.
///
/// # Errors
/// If the kernel has no descriptor left.
pub(super) fn start(
    runtime: &Handle,
    inotify: &Arc<Inotify>,
    shared: &Arc<Shared>,
) -> io::Result<AbortOnDropHandle<()>> {
    let task = Task {
        inotify: Arc::clone(inotify),
        pause: Pause::new()?,
        shared: Arc::clone(shared),
        gathered: Gathered::new(),
        next_pass: Instant::now(),
    };
    Ok(AbortOnDropHandle::new(runtime.spawn(task.run())))
}

struct Task {
    inotify: Arc<Inotify>,
    pause: Pause,
    shared: Arc<Shared>,
    gathered: Gathered,
    /// The earliest time of the next pass.
    next_pass: Instant,
}

impl Task {
    async fn run(mut self) {
        let mut has_failed = false;
        loop {
            // If no wait below waits, the runs still get their turn.
            consume_budget().await;
            let passed = self.pass().await;
            if let Err(error) = &passed {
                if !std::mem::replace(&mut has_failed, true) {
                    let error = error as &dyn std::error::Error;
                    tracing::error!(error, "cannot watch the run folders; all runs fall back to polling");
                }
                self.gathered.lost = true;
            }
            // `Runs::wake` in `watch.rs`. The next step is in `process/run.rs` (`wait_or_force_end`).
            let woken = self.shared.lock().wake(&self.gathered);
            self.gathered.clear();
            self.next_pass = Instant::now() + pause_after(woken, self.shared.limits.run_gather);
            if passed.is_err() {
                sleep(self.shared.limits.run_poll).await;
            }
        }
    }

    /// Waits until inotify has events, and until the pause after the last pass is over. Then gathers the runs that the
    /// events name.
    ///
    /// Events that come during the pause still wake the worker that waits for the kernel, though no task. A second
    /// epoll instance, which reports inotify only once (`EPOLLONESHOT`), prevents that. But it takes more system calls
    /// in each pass, and `cargo xtask bench` showed no gain.
    async fn pass(&mut self) -> io::Result<()> {
        let Inotify(events) = &*self.inotify;
        events.readable().await?;
        self.pause.until(self.next_pass).await?;
        let gather = || match self.gathered.read(events)? {
            // The next wait is for events that come after this.
            Unread::None => Err(ErrorKind::WouldBlock.into()),
            Unread::Some => Ok(()),
        };
        match events.try_io(gather) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            gathered => gathered,
        }
    }
}

/// A timer that is more exact than the one of the runtime, which counts milliseconds.
///
/// A timer is not a pipe, but the runtime waits for both in the same way.
struct Pause(pipe::Receiver);

impl Pause {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(pipe::Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits until `end`.
    async fn until(&self, end: Instant) -> io::Result<()> {
        let Self(timer) = self;
        let left = end.saturating_duration_since(Instant::now());
        // 0 would disarm the timer.
        if left.is_zero() {
            return Ok(());
        }
        let it_value = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
        loop {
            timer.readable().await?;
            match timer.try_io(|| Ok(rustix::io::read(timer, &mut [0; 8])?)) {
                // The runtime may wake without cause, and does so once after each earlier expiry.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                expired => return expired.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watcher_pauses_longer_if_many_runs_print_at_the_same_time() {
        let pauses_us = [0, 1, 2, 3, 4, 5, 6, 100].map(|woken| {
            let pause = pause_after(woken, Duration::from_micros(250));
            pause.as_micros()
        });
        assert_eq!(pauses_us, [0, 250, 250, 500, 750, 1000, 1000, 1000]);
    }
}
