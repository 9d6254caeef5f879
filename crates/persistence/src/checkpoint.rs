//! Takes the log over into the database file, off the path of the commits.
//!
//! A checkpoint inside a COMMIT makes everybody wait for it. So the writer never makes one by itself: a thread
//! with a connection of its own does, and the writer only empties the log when nothing else is to be done, or
//! when it has grown too long because somebody wrote all the time.
//!
//! The first commit after a whole log was taken over begins it anew, and flushes its head in every mode: somebody waits
//! for the disk. So a log that is being written is left alone until it is worth that.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode};
use rustix::fs::statvfs;
use tokio::sync::mpsc;

use crate::config::StoreLimits;
use crate::reserve::{ReserveUse, SharedReserve};
use crate::writer::Order;

/// Takes over what it can without waiting for anybody.
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Takes over all of it and empties the log; waits for readers.
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Takes over all of it, and has the next commit begin at its start; waits for readers. The file stays as long as it is:
/// to give back what is written again at once takes longer than all the rest.
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";

/// Tells how many pages the log holds, and how many of them have been taken over; does nothing.
const STATE: &str = "PRAGMA wal_checkpoint(NOOP)";

/// Each time the log has grown by so much, the room on the disk is looked at.
const LOOK_BYTES: u64 = 1 << 20;

/// A disk with less room than so many times the log has too little.
const SCARCE: u64 = 2;

/// What a page takes in the log: itself, with the default size of SQLite, and its head.
const PAGE_BYTES: u64 = 4096 + 24;

/// A log with at most so many new pages is begun anew without making anybody wait for long.
const FEW_PAGES: i64 = 128;

/// After so many rounds what is written all the time is taken over, however little that is.
const WRITTEN_ROUNDS: u32 = 25;

/// After so many rounds without a write the writer is asked to empty the log, and again after as many.
const IDLE_ROUNDS: u32 = 5;

/// Runs until the other end of `stop` is gone.
pub(crate) fn run(
    connection: &Connection,
    path: &Path,
    limits: &StoreLimits,
    reserve: &SharedReserve,
    (orders, to_wipe): (&mpsc::WeakSender<Order>, &AtomicBool),
    stop: &Receiver<()>,
) {
    let log = log_path(path);
    let mut rounds = Rounds::default();
    let interval = Duration::from_millis(u64::from(limits.checkpoint_interval_ms.max(1)));
    while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        reserve.lock().unwrap_or_else(PoisonError::into_inner).keep();
        let now = Fingerprint::of(&log);
        if now.bytes == 0 && !to_wipe.load(Ordering::Relaxed) {
            continue;
        }
        rounds.note(now);
        let is_worth_it =
            rounds.is_due() || rounds.is_written() && limits.checkpoint_pages <= Pages::of(connection).new;
        if is_worth_it && has_room(connection, path) {
            rounds.written = 0;
            if let Err(error) = connection.query_row(PASSIVE, [], |_| Ok(())) {
                tracing::warn!(error = &error as &dyn std::error::Error, "a checkpoint failed");
            }
        }
        if rounds.is_idle_again()
            && let Some(orders) = orders.upgrade()
        {
            // A full queue means that the writer is not idle after all.
            let _busy = orders.try_send(Order::CutLog);
        }
    }
}

/// Whether the disk takes what the database file grows by when all of the log is taken over. Otherwise that would fail
/// half way, and take the room that a commit needs. Where it cannot be known, it is tried.
fn has_room(connection: &Connection, path: &Path) -> bool {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).ok();
    let growth = || {
        let bytes = pragma("page_count")?.checked_mul(pragma("page_size")?)?;
        Some(bytes.unsigned_abs().saturating_sub(std::fs::metadata(path).ok()?.len()))
    };
    match (growth(), free_bytes(path)) {
        (Some(growth), Ok(free)) => growth <= free,
        _ => true,
    }
}

/// How much room the disk has there.
pub(crate) fn free_bytes(path: &Path) -> std::io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// How the log was found, round after round.
#[derive(Default)]
struct Rounds {
    seen: Fingerprint,
    /// In so many it had been written to, since it was last taken over.
    written: u32,
    /// So many have passed since it was last written to.
    idle: u32,
}

impl Rounds {
    fn note(&mut self, now: Fingerprint) {
        if now == self.seen {
            self.idle = self.idle.wrapping_add(1);
        } else {
            (self.seen, self.idle) = (now, 0);
            self.written += 1;
        }
    }

    fn is_written(&self) -> bool {
        0 < self.written
    }

    fn is_due(&self) -> bool {
        self.is_written() && (0 < self.idle || WRITTEN_ROUNDS <= self.written)
    }

    fn is_idle_again(&self) -> bool {
        0 < self.idle && self.idle.is_multiple_of(IDLE_ROUNDS)
    }
}

/// What the log holds.
struct Pages {
    all: i64,
    /// That are not in the database file.
    new: i64,
}

impl Pages {
    /// As many as there could be, where that cannot be told.
    fn of(connection: &Connection) -> Self {
        let pages = connection.prepare_cached(STATE).and_then(|mut state| {
            state.query_row([], |row| {
                let (all, taken_over): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok(Self { all, new: all - taken_over })
            })
        });
        pages.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the log cannot be looked at");
            Self { all: i64::MAX, new: i64::MAX }
        })
    }

    fn bytes(&self) -> u64 {
        self.all.unsigned_abs().saturating_mul(PAGE_BYTES)
    }
}

/// Takes over all of the log and empties it. False where somebody was in the way.
pub(crate) fn take_over_all(connection: &Connection) -> Result<bool, Error> {
    take_over(connection, TRUNCATE)
}

fn take_over(connection: &Connection, how: &str) -> Result<bool, Error> {
    let blocked: i64 = connection.query_row(how, [], |row| row.get(0))?;
    Ok(blocked == 0)
}

/// Keeps the log from growing without end; used by the writer.
pub(crate) struct LogCutter {
    database: PathBuf,
    log: PathBuf,
    bytes_max: u64,
    wait: Duration,
    /// How long other statements wait for a lock.
    usual_wait: Duration,
    /// Beyond this length it is tried; further off after a try in vain, since each costs a wait.
    try_at: u64,
    /// How long the log was when the room on the disk was last looked at.
    looked_at: u64,
    reserve: SharedReserve,
}

impl LogCutter {
    pub(crate) fn new(database: &Path, limits: &StoreLimits, reserve: SharedReserve) -> Self {
        let bytes_max = limits.wal_max_bytes;
        Self {
            database: database.to_owned(),
            log: log_path(database),
            bytes_max,
            wait: Duration::from_millis(u64::from(limits.wal_cut_wait_ms)),
            usual_wait: Duration::from_millis(u64::from(limits.busy_timeout_ms)),
            try_at: bytes_max,
            looked_at: 0,
            reserve,
        }
    }

    pub(crate) fn reserve(&self) -> SharedReserve {
        Arc::clone(&self.reserve)
    }

    /// Gives up what such a write may use of the room that is kept; false where there is nothing of it.
    pub(crate) fn release_reserve(&self, wanted: ReserveUse) -> bool {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner).release(wanted)
    }

    /// Begins the log anew if it is too long: at best when the other thread has just taken it over. `asked`, when nobody
    /// writes, it is emptied.
    pub(crate) fn after_commit(&mut self, connection: &Connection, asked: bool) {
        let log_bytes = Fingerprint::of(&self.log).bytes;
        if asked || self.takes_scarce_room(log_bytes) {
            self.empty(connection);
        } else if self.try_at < log_bytes {
            // The file stays as long as the log once was.
            let pages = Pages::of(connection);
            let bytes = pages.bytes();
            let cannot_wait = self.try_at + self.bytes_max / 4 < bytes;
            if self.try_at < bytes && (pages.new <= FEW_PAGES || cannot_wait) {
                self.cut(connection, RESTART);
            }
        }
    }

    /// Takes over all of the log and gives its room back. False where somebody reads, or the disk has no room for it.
    pub(crate) fn empty(&mut self, connection: &Connection) -> bool {
        self.cut(connection, TRUNCATE)
    }

    /// Whether the disk has so little room that the log must not wait until it is as long as it may be: what is in it and
    /// not in the database file soon does not fit there any more, and then its room could never be given back.
    fn takes_scarce_room(&mut self, log_bytes: u64) -> bool {
        if log_bytes < self.looked_at {
            self.looked_at = 0;
        }
        if log_bytes < self.looked_at + LOOK_BYTES {
            return false;
        }
        self.looked_at = log_bytes;
        free_bytes(&self.database).is_ok_and(|free| free < log_bytes.saturating_mul(SCARCE))
    }

    fn cut(&mut self, connection: &Connection, how: &str) -> bool {
        if !has_room(connection, &self.database) && !self.makes_room(connection) {
            self.try_later(connection);
            return false;
        }
        let cut = self.try_to_cut(connection, how).unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the log could not be begun anew");
            false
        });
        if cut {
            (self.try_at, self.looked_at) = (self.bytes_max, 0);
        } else {
            self.try_later(connection);
        }
        cut
    }

    /// Gives up what is kept for a start, where the log is longer than that. It is kept again when there is room.
    fn makes_room(&self, connection: &Connection) -> bool {
        let mut reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner);
        reserve.bytes() < Fingerprint::of(&self.log).bytes
            && reserve.release(ReserveUse::All)
            && has_room(connection, &self.database)
    }

    fn try_later(&mut self, connection: &Connection) {
        let bytes = Pages::of(connection).bytes().min(Fingerprint::of(&self.log).bytes);
        self.try_at = bytes.max(self.bytes_max) + self.bytes_max / 4;
    }

    fn try_to_cut(&self, connection: &Connection, how: &str) -> Result<bool, Error> {
        connection.busy_timeout(self.wait)?;
        let cut = take_over(connection, how);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that is so long.
    fn log(bytes: u64) -> Fingerprint {
        Fingerprint { bytes, modified: None }
    }

    #[test]
    fn what_is_not_taken_over_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::File::create(&path).unwrap();
        let config = crate::config::StoreConfig::new(folder.path());
        let writer = crate::connection::open_writer(&path, &config).unwrap();
        let other = crate::connection::open_writer(&path, &config).unwrap();
        writer.execute_batch("CREATE TABLE t (n); CREATE TABLE u (n)").unwrap();
        assert!(2 <= Pages::of(&other).new);
        other.query_row(PASSIVE, [], |_| Ok(())).unwrap();
        assert_eq!(Pages::of(&other).new, 0);
        writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert_eq!((Pages::of(&other).all, Pages::of(&other).new), (1, 1), "the log was begun anew");
    }

    #[test]
    fn a_log_that_is_written_waits_and_one_that_is_not_does_not() {
        let mut rounds = Rounds::default();
        rounds.note(log(1));
        assert!(!rounds.is_due(), "it is being written");
        rounds.note(log(1));
        assert!(rounds.is_due());
        rounds.written = 0;
        rounds.note(log(1));
        assert!(!rounds.is_due(), "it was taken over");
    }

    #[test]
    fn a_log_that_is_written_all_the_time_is_taken_over_nevertheless() {
        let mut rounds = Rounds::default();
        let due = (1..1000).find(|&bytes| {
            rounds.note(log(bytes));
            rounds.is_due()
        });
        assert_eq!(due, Some(u64::from(WRITTEN_ROUNDS)));
    }

    #[test]
    fn a_log_at_rest_is_cut_now_and_then() {
        let mut rounds = Rounds::default();
        let cut: Vec<_> = (0..=2 * IDLE_ROUNDS)
            .filter(|_| {
                rounds.note(log(1));
                rounds.is_idle_again()
            })
            .collect();
        assert_eq!(cut, [IDLE_ROUNDS, 2 * IDLE_ROUNDS]);
    }
}
