//! The thread that does what inotify does not: it polls folders, and counts processes.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Shared;
use crate::run_folder::Begun;

/// How often the thread counts how many processes have begun on the machine.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// The thread needs little.
const STACK_BYTES: usize = 128 << 10;

/// Starts the thread. It ends when the watcher is stopped.
pub(super) fn start(shared: Arc<Shared>, begun: Begun) -> io::Result<()> {
    let now = Instant::now();
    let work = Work { shared, next_poll: now, next_count: now, begun };
    let thread = std::thread::Builder::new().name("run-watch".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || work.run())?;
    Ok(())
}

struct Work {
    shared: Arc<Shared>,
    /// When to check the polled folders.
    next_poll: Instant,
    /// When to count how many processes have begun.
    next_count: Instant,
    begun: Begun,
}

impl Work {
    fn run(mut self) {
        while self.wait() {
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
        }
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

    /// Waits until there is something to do. Returns false if the watcher is stopped.
    fn wait(&self) -> bool {
        let mut runs = self.shared.lock();
        while !runs.stopped {
            let Some(next) = runs.next_work(self.next_poll, self.next_count) else {
                runs = self.shared.changed.wait(runs).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.shared.changed.wait_timeout(runs, left);
            runs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}
