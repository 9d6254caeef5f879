//! The thread that waits for changes in run folders, and wakes their runs.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};

use super::gather::Gathered;
use super::{Shared, planted};
use crate::run_folder::Begun;

/// How often the thread counts how many processes have begun on the machine.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// The thread needs little; its buffer is on the heap.
const STACK_BYTES: usize = 128 << 10;

/// The longest pause, as a multiple of the pause after a single run.
const PAUSES_MAX: usize = 4;

/// How long the watcher pauses after it has woken so many runs at once.
///
/// Each pass costs the server several wake-ups and a transaction, however many runs it wakes. If many agents print at
/// the same time, longer pauses share this cost among more of them. One or two agents do not wait longer.
fn pause_after(woken: usize, run_gather: Duration) -> Duration {
    match woken {
        0 => Duration::ZERO,
        _ => run_gather * (woken - 1).clamp(1, PAUSES_MAX) as u32,
    }
}

pub(super) fn start(shared: Arc<Shared>, begun: Begun) -> io::Result<()> {
    let now = Instant::now();
    let work = move || {
        Work { gathered: Gathered::new(), next_poll: now, next_count: now, begun, shared }.run();
    };
    let thread = std::thread::Builder::new().name("run-watch".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(planted::passed_on(work))?;
    Ok(())
}

struct Work {
    shared: Arc<Shared>,
    gathered: Gathered,
    /// When to check the polled folders.
    next_poll: Instant,
    /// When to count how many processes have begun.
    next_count: Instant,
    begun: Begun,
}

impl Work {
    fn run(mut self) {
        let mut has_failed = false;
        while !self.shared.lock().stopped {
            let passed = self.pass();
            if let Err(error) = passed {
                if !std::mem::replace(&mut has_failed, true) {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "cannot watch the run folders; all runs fall back to polling");
                }
                self.gathered.lost = true;
            }
            // `Runs::wake` in `watch.rs`. The next step is in `process/run.rs` (`wait_or_force_end`).
            let woken = self.shared.lock().wake(&self.gathered);
            self.gathered.clear();
            if passed.is_err() {
                std::thread::sleep(self.shared.limits.run_poll);
            } else {
                std::thread::sleep(pause_after(woken, self.shared.limits.run_gather));
            }
        }
    }

    /// Waits until something happens. Gathers the runs that inotify reports, wakes the polled runs itself, and counts
    /// processes if it is time.
    fn pass(&mut self) -> Result<()> {
        self.wait()?;
        if let Some(inotify) = &self.shared.inotify {
            self.gathered.read(inotify)?;
        }
        if self.next_poll <= Instant::now() {
            // Not under the lock, because a disk may be slow.
            let polled = self.shared.lock().polled.clone();
            for polled in polled {
                polled.look();
            }
            self.next_poll = Instant::now() + self.shared.limits.run_poll;
        }
        if self.next_count <= Instant::now() {
            self.count();
            self.next_count = Instant::now() + COUNT_EVERY;
        }
        Ok(())
    }

    /// Asks all supervisors to check their limits if many processes have begun since the last count.
    fn count(&mut self) {
        if self.begun.is_storm() {
            let folders = self.shared.lock().folders.clone();
            for folder in folders {
                folder.ask_to_look();
            }
        }
    }

    fn wait(&self) -> Result<()> {
        let until = self.shared.lock().next_work(self.next_poll, self.next_count);
        let longest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let longest = longest.map(|longest| Timespec {
            tv_sec: longest.as_secs().cast_signed(),
            tv_nsec: longest.subsec_nanos().into(),
        });
        let descriptors = [Some(&self.shared.wake_up), self.shared.inotify.as_ref()];
        let mut awaited: Vec<_> = descriptors
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut awaited, longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // Resets the counter. What has changed is in `runs`.
        let _ = rustix::io::read(&self.shared.wake_up, &mut [0; 8]);
        Ok(())
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
