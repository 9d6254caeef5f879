//! Wakes a run if something in its folder has changed.
//!
//! One task and one inotify instance serve all runs of the server, whatever the number of agents and agent types: a
//! user has 128 instances by default, and every editor takes some. If no instance or no watch is available, a thread
//! polls the folders. That is slower, but nothing else changes.
//!
//! The same thread counts how many processes begin on the machine. If there are many, it asks all supervisors to check
//! their limits.
//!
//! * [`task`]: waits for inotify, and wakes the runs
//! * [`gather`]: reads the events of inotify, and lists each run once
//! * [`thread`]: polls folders, and counts processes
//! * [`poll`]: checks a folder without inotify
//! * [`planted`]: does nothing, except in the build that hunts for planted bugs

mod gather;
mod planted;
mod poll;
mod task;
mod thread;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags};
use rustix::io::Errno;
use tokio::net::unix::pipe;
use tokio::runtime;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use self::gather::{AWAITED, Gathered};
use self::poll::Polled;
use crate::run_folder::{Begun, RunFolder};

/// The limits of a [`RunWatcher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// How long the watcher pauses after it has woken a run that inotify reported. It gathers what happens meanwhile,
    /// so that each run is woken once and reads more at once. After many runs, it pauses longer: see [`task`].
    pub run_gather: Duration,
    /// How often a run folder is checked if inotify does not watch it.
    pub run_poll: Duration,
    /// False if inotify must not be used.
    pub inotify: bool,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self { run_gather: Duration::from_micros(250), run_poll: Duration::from_millis(20), inotify: true }
    }
}

/// Why run folders are polled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollsBecause {
    #[error("inotify was disabled")]
    Told,
    #[error(
        "no inotify instance is available ({0}); raise fs.inotify.max_user_instances with sysctl, or stop \
         other programs of this user that watch files"
    )]
    NoInstance(String),
    #[error("inotify cannot watch more folders ({0}); raise fs.inotify.max_user_watches with sysctl")]
    NoWatch(String),
}

/// The one watcher of all run folders of a server. Clones share it. Its task and its thread end with the last clone and
/// the last watched run.
#[derive(Clone)]
pub struct RunWatcher(Arc<Handle>);

/// Dropping this stops the task and the thread.
struct Handle {
    shared: Arc<Shared>,
    /// `None` if every folder is polled.
    _task: Option<AbortOnDropHandle<()>>,
}

/// What the task and the thread share with the watched runs.
struct Shared {
    limits: WatchLimits,
    /// `None` if every folder is polled.
    inotify: Option<Arc<Inotify>>,
    runs: Mutex<Runs>,
    /// Wakes the thread, which must read `runs` again.
    changed: Condvar,
}

/// The inotify instance. It is not a pipe, but the runtime waits for both in the same way.
struct Inotify(pipe::Receiver);

#[derive(Default)]
struct Runs {
    /// The waiting runs, by watch descriptor. A folder that is watched twice has one descriptor.
    watched: HashMap<i32, Vec<Arc<Notify>>>,
    polled: Vec<Arc<Polled>>,
    /// All watched folders, by inotify or by polling.
    folders: Vec<Arc<RunFolder>>,
    polls_because: Option<PollsBecause>,
    stopped: bool,
}

/// One folder that is watched until this is dropped.
pub(super) struct FolderWatch {
    watcher: RunWatcher,
    changed: Arc<Notify>,
    folder: Arc<RunFolder>,
    by: By,
}

enum By {
    Inotify(i32),
    Poll(Arc<Polled>),
}

impl RunWatcher {
    /// Starts the watcher. If inotify is not available, it polls, and logs a warning. Call this on an async runtime
    /// that has its I/O and time drivers.
    ///
    /// # Errors
    /// If there is no runtime, or the kernel has no thread or no descriptor left.
    ///
    /// # Panics
    /// If the runtime has no I/O driver.
    pub fn new(limits: WatchLimits) -> io::Result<Self> {
        Self::counting(limits, Begun::on_this_machine())
    }

    fn counting(limits: WatchLimits, begun: Begun) -> io::Result<Self> {
        let runtime = runtime::Handle::try_current().map_err(io::Error::other)?;
        let (inotify, polls_because) = match open_inotify(limits) {
            Ok(inotify) => (Some(pipe::Receiver::from_owned_fd_unchecked(inotify)?), None),
            Err(because) => (None, Some(because)),
        };
        let inotify = inotify.map(|inotify| Arc::new(Inotify(inotify)));
        let shared = Arc::new(Shared { limits, inotify, runs: Mutex::default(), changed: Condvar::new() });
        let start = |inotify| task::start(&runtime, inotify, &shared);
        let task = shared.inotify.as_ref().map(start).transpose()?;
        thread::start(Arc::clone(&shared), begun)?;
        if let Some(because) = polls_because {
            shared.lock().will_poll(because);
        }
        Ok(Self(Arc::new(Handle { shared, _task: task })))
    }

    /// Why some or all folders are polled. `None` if inotify has watched all folders so far.
    pub fn polls_because(&self) -> Option<PollsBecause> {
        self.shared().lock().polls_because.clone()
    }

    /// Tries to watch this folder, and stops watching it. Returns why folders are polled; `None` if they are not.
    /// Blocks for a moment.
    ///
    /// # Errors
    /// If the folder cannot be watched at all.
    pub fn try_out(&self, folder: &Path) -> io::Result<Option<PollsBecause>> {
        drop(self.watch(folder)?);
        Ok(self.polls_because())
    }

    /// Watches a folder. Blocks for a moment.
    pub(super) fn watch(&self, folder: &Path) -> io::Result<FolderWatch> {
        let changed = Arc::new(Notify::new());
        let by = match self.watch_by_inotify(folder, &changed)? {
            Some(descriptor) => By::Inotify(descriptor),
            None => By::Poll(self.poll(folder, &changed)?),
        };
        let folder = Arc::new(RunFolder::at(folder));
        let mut runs = self.shared().lock();
        runs.folders.push(Arc::clone(&folder));
        if runs.folders.len() == 1 {
            // Until now there was no run, so the thread did not count processes.
            self.shared().changed.notify_all();
        }
        drop(runs);
        Ok(FolderWatch { watcher: self.clone(), changed, folder, by })
    }

    /// Returns the watch descriptor. `None` if inotify has no watch left.
    fn watch_by_inotify(&self, folder: &Path, changed: &Arc<Notify>) -> io::Result<Option<i32>> {
        let Some(inotify) = &self.shared().inotify else { return Ok(None) };
        // Under the lock, so that no drop removes a descriptor that inotify has just returned again.
        let mut runs = self.shared().lock();
        match inotify::add_watch(&inotify.0, folder, AWAITED) {
            Ok(descriptor) => {
                runs.watched.entry(descriptor).or_default().push(Arc::clone(changed));
                Ok(Some(descriptor))
            }
            Err(error @ (Errno::NOSPC | Errno::NOMEM)) => {
                runs.will_poll(PollsBecause::NoWatch(io::Error::from(error).to_string()));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn poll(&self, folder: &Path, changed: &Arc<Notify>) -> io::Result<Arc<Polled>> {
        let polled = Arc::new(Polled::new(folder, Arc::clone(changed))?);
        self.shared().lock().polled.push(Arc::clone(&polled));
        self.shared().changed.notify_all();
        Ok(polled)
    }

    fn shared(&self) -> &Shared {
        &self.0.shared
    }
}

fn open_inotify(limits: WatchLimits) -> Result<OwnedFd, PollsBecause> {
    if !limits.inotify {
        return Err(PollsBecause::Told);
    }
    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
        .map_err(|error| PollsBecause::NoInstance(io::Error::from(error).to_string()))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    /// Keeps the first reason, and logs it.
    fn will_poll(&mut self, because: PollsBecause) {
        if self.polls_because.is_none() {
            tracing::warn!(
                "inotify is not available ({because}); the server polls the run folders instead, which delays output \
                 and uses more CPU"
            );
            self.polls_because = Some(because);
        }
    }

    /// When to wake even if nothing happens. `None` if nothing runs.
    fn next_work(&self, poll: Instant, count: Instant) -> Option<Instant> {
        let poll = (!self.polled.is_empty()).then_some(poll);
        let count = (!self.folders.is_empty()).then_some(count);
        poll.into_iter().chain(count).min()
    }

    /// Wakes each run whose folder has changed, as inotify reports. Returns how many there were. [`Polled::look`]
    /// wakes the polled runs; this does so only if events were lost.
    fn wake(&self, gathered: &Gathered) -> usize {
        if gathered.lost {
            let polled = self.polled.iter().map(|polled| polled.waiting());
            let all = self.watched.values().flatten().chain(polled);
            return all.map(|changed| changed.notify_one()).count();
        }
        let woken = gathered.changed.iter().filter_map(|descriptor| self.watched.get(descriptor)).flatten();
        woken.map(|changed| changed.notify_one()).count()
    }
}

impl FolderWatch {
    /// Waits until something has changed since the last call: [`Runs::wake`] or [`Polled::look`] ends the wait.
    /// `ProcessRun::wait_or_force_end` waits here. Changes are not counted: check, then wait, then check again.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        let shared = self.watcher.shared();
        let mut runs = shared.lock();
        runs.folders.retain(|other| !Arc::ptr_eq(other, &self.folder));
        match &self.by {
            By::Poll(polled) => runs.polled.retain(|other| !Arc::ptr_eq(other, polled)),
            By::Inotify(descriptor) => {
                let Some(waiting) = runs.watched.get_mut(descriptor) else { return };
                waiting.retain(|changed| !Arc::ptr_eq(changed, &self.changed));
                // Another watch of the same folder keeps the descriptor.
                if waiting.is_empty() {
                    runs.watched.remove(descriptor);
                    if let Some(inotify) = &shared.inotify {
                        // It fails if the folder is gone: its watch is gone too.
                        let _ = inotify::remove_watch(&inotify.0, *descriptor);
                    }
                }
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
