//! Checkpoints: copies the log into the database file, off the path of the commits.
//!
//! A checkpoint inside a COMMIT delays every writer. So the writer never starts one by itself: a thread with its own
//! connection does. The writer only restarts or empties the log, when the store is idle or the log is too long. In
//! the second case large writes wait until the thread has copied nearly all of it, so that the writer has little left
//! to do and small writes wait for no more than that.
//!
//! The first commit after a complete checkpoint restarts the log, and flushes its header in every mode, which waits
//! for the disk. So a log that is being written to is checkpointed only when that is worth it.

mod cutter;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Error};
use tokio::sync::mpsc;

pub(crate) use self::cutter::{LogCut, LogCutter};
use crate::sqlite::command::WriterOrder;
use crate::sqlite::config::SqliteLimits;
use crate::sqlite::database::folder::free_bytes;
use crate::sqlite::database::reserve::SharedReserve;

/// Copies what it can without waiting.
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Copies everything and empties the log; waits for readers.
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Copies everything, and lets the next commit restart the log; waits for readers. The file keeps its length:
/// truncating a file that is written again at once takes longer than everything else.
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";

/// Returns how many pages the log holds and how many of them are checkpointed; does nothing.
const STATE: &str = "PRAGMA wal_checkpoint(NOOP)";

/// The free disk space is checked each time the log has grown by this much.
const LOOK_BYTES: u64 = 1 << 20;

/// The disk is scarce if its free space is less than this many times the log.
const SCARCE: u64 = 2;

/// A page in the log: the page, with the default size of SQLite, and its header.
const PAGE_BYTES: u64 = 4096 + 24;

/// A log with at most this many new pages can be restarted without a long delay.
const FEW_PAGES: i64 = 128;

/// If a reader or a full disk is in the way, the next requested round starts after this pause.
const ROUND_PAUSE: Duration = Duration::from_millis(5);

/// After this many rounds, a log that is written to all the time is checkpointed in any case.
const WRITTEN_ROUNDS: u32 = 25;

/// After this many rounds without a write, and again after as many, the writer is asked to empty the log.
const IDLE_ROUNDS: u32 = 5;

/// A request to the checkpoint thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointRound {
    /// The log is too long: checkpoint it now, then send [`WriterOrder::CheckpointDone`].
    Now,
    /// Stop.
    Last,
}

/// Held during a requested round.
pub(crate) type UnderWay = Arc<Mutex<()>>;

/// Runs until the last round is requested.
pub(crate) fn run(
    connection: &Connection,
    (path, database, under_way): (&Path, &File, &UnderWay),
    limits: &SqliteLimits,
    reserve: &SharedReserve,
    (orders, to_wipe): (&mpsc::WeakSender<WriterOrder>, &AtomicBool),
    asked: &Receiver<CheckpointRound>,
) {
    let log = log_path(path);
    let mut rounds = Rounds::default();
    let interval = Duration::from_millis(u64::from(limits.checkpoint_interval_ms.max(1)));
    loop {
        match asked.recv_timeout(interval) {
            Ok(CheckpointRound::Now) => {
                let is_under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
                checkpoint_some(connection, path);
                rounds.written = 0;
                // SQLite flushes the database file with the last page. That would happen in the writer, so it is done
                // here.
                let flushed = database.sync_data();
                if let Err(error) = &flushed {
                    tracing::warn!(error = error as &dyn std::error::Error, "cannot flush the database");
                }
                drop(is_under_way);
                if FEW_PAGES < Pages::of(connection).new {
                    std::thread::sleep(ROUND_PAUSE);
                }
                // Without the flush, only the log is certain to hold the data.
                if flushed.is_ok()
                    && let Some(orders) = orders.upgrade()
                {
                    // A full queue means that the writer is busy, and checks the log by itself.
                    let _busy = orders.try_send(WriterOrder::CheckpointDone);
                }
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(CheckpointRound::Last) | Err(RecvTimeoutError::Disconnected) => return,
        }
        reserve.lock().unwrap_or_else(PoisonError::into_inner).keep();
        let now = Fingerprint::of(&log);
        if now.bytes == 0 && !to_wipe.load(Ordering::Relaxed) {
            continue;
        }
        rounds.note(now);
        let is_worth_it =
            rounds.is_due() || rounds.is_written() && limits.checkpoint_pages <= Pages::of(connection).new;
        if is_worth_it && checkpoint_some(connection, path) {
            rounds.written = 0;
        }
        if rounds.is_idle_again()
            && let Some(orders) = orders.upgrade()
        {
            // A full queue means that the writer is not idle.
            let _busy = orders.try_send(WriterOrder::CutLog);
        }
    }
}

/// Copies as much as possible without waiting for readers or the writer. Returns false if the disk has no room for
/// it.
fn checkpoint_some(connection: &Connection, path: &Path) -> bool {
    if !has_room(connection, path, 0) {
        return false;
    }
    if let Err(error) = connection.query_row(PASSIVE, [], |_| Ok(())) {
        tracing::warn!(error = &error as &dyn std::error::Error, "a checkpoint failed");
    }
    true
}

/// Whether the disk has room for the growth of the database file. Otherwise the checkpoint would fail half way, and
/// take the space that a commit needs. If it is unknown, the checkpoint is tried. `freed_bytes` are counted as free.
fn has_room(connection: &Connection, path: &Path, freed_bytes: u64) -> bool {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).ok();
    let growth = || {
        let bytes = pragma("page_count")?.checked_mul(pragma("page_size")?)?;
        Some(bytes.unsigned_abs().saturating_sub(std::fs::metadata(path).ok()?.len()))
    };
    match (growth(), free_bytes(path)) {
        (Some(growth), Ok(free)) => growth <= free.saturating_add(freed_bytes),
        _ => true,
    }
}

/// What the rounds have observed of the log.
#[derive(Default)]
struct Rounds {
    seen: Fingerprint,
    /// Rounds in which it had been written to, since the last checkpoint.
    written: u32,
    /// Rounds since it was last written to.
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

/// The pages of the log.
struct Pages {
    all: i64,
    /// Not checkpointed yet.
    new: i64,
}

impl Pages {
    /// If it is unknown, the highest possible number.
    fn of(connection: &Connection) -> Self {
        let pages = connection.prepare_cached(STATE).and_then(|mut state| {
            state.query_row([], |row| {
                let (all, checkpointed): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok(Self { all, new: all - checkpointed })
            })
        });
        pages.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot check the write-ahead log");
            Self { all: i64::MAX, new: i64::MAX }
        })
    }

    fn bytes(&self) -> u64 {
        self.all.unsigned_abs().saturating_mul(PAGE_BYTES)
    }
}

/// Checkpoints the whole log and empties it. Returns false if a reader or writer blocked it.
pub(crate) fn checkpoint_all(connection: &Connection) -> Result<bool, Error> {
    checkpoint_with(connection, TRUNCATE)
}

fn checkpoint_with(connection: &Connection, how: &str) -> Result<bool, Error> {
    let blocked: i64 = connection.query_row(how, [], |row| row.get(0))?;
    Ok(blocked == 0)
}

/// Tells whether a file has been written to.
#[derive(Default, PartialEq, Eq)]
struct Fingerprint {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
}

impl Fingerprint {
    /// A missing file counts as empty.
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
    fn pages_that_are_not_checkpointed_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::File::create(&path).unwrap();
        let config = crate::sqlite::config::SqliteConfig::new(folder.path());
        let writer = crate::sqlite::database::connection::open_writer(&path, &config).unwrap();
        let other = crate::sqlite::database::connection::open_writer(&path, &config).unwrap();
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
        assert!(!rounds.is_due(), "it was checkpointed");
    }

    #[test]
    fn a_log_that_is_written_all_the_time_is_checkpointed_nevertheless() {
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
