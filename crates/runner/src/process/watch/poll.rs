//! Checks a run folder that inotify does not watch.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use crate::run_folder::RunFolder;

/// File systems record the time of a change with a coarse clock: at worst in steps of two seconds. A second change
/// within one step is invisible, so for this long after a change every look wakes the run.
const TICK: Duration = Duration::from_secs(2);

/// A folder that is polled.
pub(super) struct Polled {
    folder: PathBuf,
    changed: Arc<Notify>,
    seen: Mutex<Seen>,
}

struct Seen {
    now: Look,
    /// Until when there may be invisible changes.
    unsure_until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    /// `None` if there is no spool, or no folder.
    spool_bytes: Option<u64>,
    folder_changed: Option<SystemTime>,
}

impl Polled {
    pub(super) fn new(folder: &Path, changed: Arc<Notify>) -> io::Result<Self> {
        if !fs::metadata(folder)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let seen = Seen { now: Look::at(folder), unsure_until: Instant::now() + TICK };
        Ok(Self { folder: folder.to_owned(), changed, seen: Mutex::new(seen) })
    }

    /// What the run waits for.
    pub(super) fn waiting(&self) -> &Arc<Notify> {
        &self.changed
    }

    /// Checks the folder, and wakes the run if something may have changed.
    pub(super) fn look(&self) {
        let now = Look::at(&self.folder);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.now.folder_changed != now.folder_changed {
            seen.unsure_until = Instant::now() + TICK;
        }
        if seen.now != now || Instant::now() < seen.unsure_until {
            seen.now = now;
            self.changed.notify_one();
        }
    }
}

impl Look {
    fn at(folder: &Path) -> Self {
        let spool = fs::metadata(folder.join(RunFolder::SPOOL));
        Self {
            spool_bytes: spool.ok().map(|spool| spool.len()),
            folder_changed: fs::metadata(folder).and_then(|folder| folder.modified()).ok(),
        }
    }
}
