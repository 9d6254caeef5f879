//! Takes the log over into the database file, off the path of the commits.
//!
//! A checkpoint inside a COMMIT makes everybody wait for it. So the writer never makes one by itself: a thread
//! with a connection of its own does, and the writer only empties the log when nothing else is to be done, or
//! when it has grown too long because somebody wrote all the time.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode};
use tokio::sync::mpsc;

use crate::config::StoreLimits;
use crate::writer::Order;

/// Takes over what it can without waiting for anybody.
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Takes over all of it and empties the log; waits for readers.
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// After so many rounds without a write the writer is asked to empty the log, and again after as many.
const IDLE_ROUNDS: u32 = 5;

/// Runs until the other end of `stop` is gone.
pub(crate) fn run(
    connection: &Connection,
    path: &Path,
    interval_ms: u32,
    orders: &mpsc::WeakSender<Order>,
    stop: &Receiver<()>,
) {
    let log = log_path(path);
    let (mut seen, mut idle_rounds) = (Fingerprint::default(), 0);
    let interval = Duration::from_millis(u64::from(interval_ms.max(1)));
    while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let now = Fingerprint::of(&log);
        if now.bytes == 0 {
            continue;
        }
        if now != seen {
            (seen, idle_rounds) = (now, 0);
            if let Err(error) = connection.query_row(PASSIVE, [], |_| Ok(())) {
                tracing::warn!(error = &error as &dyn std::error::Error, "a checkpoint failed");
            }
            continue;
        }
        idle_rounds += 1;
        if idle_rounds % IDLE_ROUNDS == 0
            && let Some(orders) = orders.upgrade()
        {
            // A full queue means that the writer is not idle after all.
            let _busy = orders.try_send(Order::CutLog);
        }
    }
}

/// Takes over all of the log. False where somebody was in the way.
pub(crate) fn take_over(connection: &Connection) -> Result<bool, Error> {
    let blocked: i64 = connection.query_row(TRUNCATE, [], |row| row.get(0))?;
    Ok(blocked == 0)
}

/// Keeps the log from growing without end; used by the writer.
pub(crate) struct LogCutter {
    log: PathBuf,
    bytes_max: u64,
    wait: Duration,
    /// How long other statements wait for a lock.
    usual_wait: Duration,
    /// Beyond this length it is tried; further off after a try in vain, since each costs a wait.
    try_at: u64,
}

impl LogCutter {
    pub(crate) fn new(database: &Path, limits: &StoreLimits) -> Self {
        let bytes_max = limits.wal_max_bytes;
        Self {
            log: log_path(database),
            bytes_max,
            wait: Duration::from_millis(u64::from(limits.wal_cut_wait_ms)),
            usual_wait: Duration::from_millis(u64::from(limits.busy_timeout_ms)),
            try_at: bytes_max,
        }
    }

    /// Empties the log if it is too long, or `asked`.
    pub(crate) fn after_commit(&mut self, connection: &Connection, asked: bool) {
        let bytes = Fingerprint::of(&self.log).bytes;
        if !asked && bytes <= self.try_at {
            return;
        }
        match self.cut(connection) {
            Ok(true) => self.try_at = self.bytes_max,
            Ok(false) => self.try_at = bytes + self.bytes_max / 4,
            Err(error) => {
                self.try_at = bytes + self.bytes_max / 4;
                tracing::warn!(error = &error as &dyn std::error::Error, "the log could not be emptied");
            }
        }
    }

    fn cut(&self, connection: &Connection) -> Result<bool, Error> {
        connection.busy_timeout(self.wait)?;
        let cut = take_over(connection);
        connection.busy_timeout(self.usual_wait)?;
        // SQLite says so in either way.
        match cut {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
            cut => cut,
        }
    }
}

/// Tells whether a file has been written to.
#[derive(Default, PartialEq, Eq)]
struct Fingerprint {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
}

impl Fingerprint {
    /// A file that is missing is like an empty one.
    fn of(path: &Path) -> Self {
        let Ok(metadata) = std::fs::metadata(path) else { return Self::default() };
        Self { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

fn log_path(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}
