//! The thread that waits for what happens in the folders of runs, and wakes who waits for it.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};

use super::gather::Gathered;
use super::{Runs, Shared};

/// The thread needs little; its buffer is on the heap.
const STACK_BYTES: usize = 128 << 10;

pub(super) fn start(shared: Arc<Shared>) -> io::Result<()> {
    let work = move || Work { gathered: Gathered::new(), next_poll: Instant::now(), shared }.run();
    std::thread::Builder::new().name("run-watch".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
    Ok(())
}

struct Work {
    shared: Arc<Shared>,
    gathered: Gathered,
    /// When to look at the folders that are polled.
    next_poll: Instant,
}

impl Work {
    fn run(mut self) {
        let mut has_failed = false;
        while !self.shared.lock().stopped {
            let passed = self.pass();
            if let Err(error) = passed {
                if !std::mem::replace(&mut has_failed, true) {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(
                        error,
                        "the folders of runs cannot be watched, and all runs look again and again"
                    );
                }
                self.gathered.lost = true;
            }
            let woken = self.shared.lock().wake(&self.gathered);
            self.gathered.clear();
            if passed.is_err() {
                std::thread::sleep(self.shared.limits.poll);
            } else if woken {
                std::thread::sleep(self.shared.limits.rest);
            }
        }
    }

    /// Waits until something happens, and gathers all that has.
    fn pass(&mut self) -> Result<()> {
        self.wait()?;
        if let Some(inotify) = &self.shared.inotify {
            self.gathered.read(inotify)?;
        }
        if self.next_poll <= Instant::now() {
            // Not under the lock: a disk may be slow to answer.
            let polled = self.shared.lock().polled.clone();
            for polled in polled {
                polled.look();
            }
            self.next_poll = Instant::now() + self.shared.limits.poll;
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let until = (!self.shared.lock().polled.is_empty()).then_some(self.next_poll);
        let longest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let longest = longest.map(|longest| Timespec {
            tv_sec: longest.as_secs().cast_signed(),
            tv_nsec: longest.subsec_nanos().into(),
        });
        let descriptors = [Some(&self.shared.told), self.shared.inotify.as_ref()];
        let mut awaited: Vec<_> = descriptors
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut awaited, longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // What it was told of is in `runs`.
        let _ = rustix::io::read(&self.shared.told, &mut [0; 8]);
        Ok(())
    }
}

impl Runs {
    /// Wakes each run that has news; says whether there was any.
    fn wake(&self, gathered: &Gathered) -> bool {
        if gathered.lost {
            let polled = self.polled.iter().map(|polled| polled.waiting());
            for changed in self.watched.values().flatten().chain(polled) {
                changed.notify_one();
            }
            return true;
        }
        let woken = gathered.changed.iter().filter_map(|descriptor| self.watched.get(descriptor)).flatten();
        woken.map(|changed| changed.notify_one()).count() != 0
    }
}
