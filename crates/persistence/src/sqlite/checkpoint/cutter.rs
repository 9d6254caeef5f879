//! Keeps the log from growing without end.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode};

use super::{
    CheckpointRound, FEW_PAGES, Fingerprint, LOOK_BYTES, Pages, RESTART, SCARCE, TRUNCATE, UnderWay,
    checkpoint_with, free_bytes, has_room, log_path,
};
use crate::sqlite::config::SqliteLimits;
use crate::sqlite::database::reserve::{Reserve, ReserveUse, SharedReserve};

/// On a full disk, the next try to empty the log waits this many times as long as the last one took, because writes
/// wait for each of them, but at most `TRY_PAUSE_MAX`, so that the log does not stay long.
const TRY_PAUSE: u32 = 20;
const TRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Keeps the log from growing without end; used by the writer.
pub(crate) struct LogCutter {
    database: PathBuf,
    log: PathBuf,
    bytes_max: u64,
    wait: Duration,
    /// How long other statements wait for a lock.
    usual_wait: Duration,
    /// The log is restarted beyond this length. After a failed try the length is raised, because each try costs a
    /// wait.
    try_at: u64,
    /// The length of the log when the free disk space was last checked.
    looked_at: u64,
    /// The disk is full, or nearly so, and the log has not been emptied since. It may still have the length that a
    /// failed write needed.
    is_full: bool,
    /// When it may be emptied at the earliest, while the disk is full.
    next_try: Option<Instant>,
    reserve: SharedReserve,
    rounds: SyncSender<CheckpointRound>,
    under_way: UnderWay,
    /// Since when the log is too long and large writes wait.
    holds_since: Option<Instant>,
    holds_most: Duration,
}

/// What the writer knows about the log after a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogCut {
    /// It is to be emptied: nobody writes, a command has removed data, or the store closes.
    pub(crate) empty: bool,
    /// The requested checkpoint is done. Before that, much of the database file may not be flushed yet.
    pub(crate) checkpoint_done: bool,
}

impl LogCutter {
    pub(crate) fn new(
        database: &Path,
        limits: &SqliteLimits,
        reserve: SharedReserve,
        (rounds, under_way): (SyncSender<CheckpointRound>, UnderWay),
    ) -> Self {
        let bytes_max = limits.wal_bytes;
        Self {
            database: database.to_owned(),
            log: log_path(database),
            bytes_max,
            wait: Duration::from_millis(u64::from(limits.wal_cut_wait_ms)),
            usual_wait: Duration::from_millis(u64::from(limits.busy_timeout_ms)),
            try_at: bytes_max,
            looked_at: 0,
            is_full: false,
            next_try: None,
            reserve,
            rounds,
            under_way,
            holds_since: None,
            holds_most: Duration::from_millis(u64::from(limits.flood_wait_ms)),
        }
    }

    /// Until when large writes wait, while the log is checkpointed and then restarted. The writer itself would have
    /// to copy the pages that they add meanwhile, and every write would wait for that.
    pub(crate) fn holds(&self) -> Option<Instant> {
        // Whatever blocks the restart, no write waits longer.
        self.holds_since.map(|since| since + self.holds_most).filter(|until| Instant::now() < *until)
    }

    pub(crate) fn reserve(&self) -> SharedReserve {
        Arc::clone(&self.reserve)
    }

    /// Frees the part of the reserved disk space that such a write may use. Returns false if there is nothing to
    /// free.
    pub(crate) fn release_reserve(&self, wanted: ReserveUse) -> bool {
        self.lock_reserve().release(wanted)
    }

    /// A write found the disk full, so the log is emptied after it.
    pub(crate) fn note_full(&mut self) {
        self.is_full = true;
    }

    /// Restarts the log if it is too long, preferably just after a checkpoint; or empties it.
    pub(crate) fn after_commit(&mut self, connection: &Connection, cut: LogCut) {
        let log_bytes = Fingerprint::of(&self.log).bytes;
        self.is_full |= self.takes_scarce_room(log_bytes);
        let may_try = self.next_try.is_none_or(|next_try| next_try <= Instant::now());
        if self.is_full && may_try || cut.empty {
            let began = Instant::now();
            // If somebody reads, a later write tries again.
            self.is_full &= !self.empty(connection);
            let pause = (began.elapsed() * TRY_PAUSE).min(TRY_PAUSE_MAX);
            self.next_try = self.is_full.then(|| Instant::now() + pause);
        } else if self.try_at < log_bytes {
            // The file keeps the length that the log once had.
            let pages = Pages::of(connection);
            if pages.bytes() <= self.try_at {
                self.holds_since = None;
                return;
            }
            let holds_since = *self.holds_since.get_or_insert_with(Instant::now);
            // Even small writes may be faster than the checkpoint thread.
            let is_outgrown = self.try_at + self.bytes_max / 2 < pages.bytes();
            let has_waited = self.holds_most <= holds_since.elapsed();
            if (cut.checkpoint_done && pages.new <= FEW_PAGES)
                || has_waited
                || is_outgrown
                || !self.ask_for_round()
            {
                self.begin_anew(connection, is_outgrown);
            }
        } else {
            self.holds_since = None;
        }
    }

    /// Restarts the log. SQLite would refuse this during a checkpoint of the other thread. If it `must` be done, this
    /// waits for that thread: on a slow disk for a long time, and every write waits with it. Otherwise a later write
    /// tries again.
    fn begin_anew(&mut self, connection: &Connection, must: bool) {
        let under_way = Arc::clone(&self.under_way);
        let free = if must { Some(lock(&under_way)) } else { try_lock(&under_way) };
        if free.is_some() {
            self.cut(connection, RESTART);
        } else {
            self.holds_since = None;
        }
    }

    /// Requests a round from the checkpoint thread. Returns false if that thread has ended.
    fn ask_for_round(&self) -> bool {
        // A pending request is enough.
        !matches!(self.rounds.try_send(CheckpointRound::Now), Err(TrySendError::Disconnected(_)))
    }

    /// Checkpoints the whole log and frees its space. Returns false if a reader is active, or the disk has no room
    /// for it.
    pub(crate) fn empty(&mut self, connection: &Connection) -> bool {
        let under_way = Arc::clone(&self.under_way);
        let _free = lock(&under_way);
        self.cut(connection, TRUNCATE)
    }

    /// Whether the disk is so full that the log must not grow to its limit: the pages that are not in the database
    /// file would soon not fit there any more, and then the space of the log could never be freed.
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
        self.holds_since = None;
        let kept_bytes = self.lock_reserve().kept_bytes();
        if !has_room(connection, &self.database, 0) && !self.makes_room(connection) {
            self.try_later(connection);
            return false;
        }
        let cut = self.try_to_cut(connection, how).unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot restart the write-ahead log");
            false
        });
        if cut {
            (self.try_at, self.looked_at) = (self.bytes_max, 0);
        } else {
            self.lock_reserve().restore(kept_bytes);
            self.try_later(connection);
        }
        cut
    }

    fn lock_reserve(&self) -> MutexGuard<'_, Reserve> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the space that is reserved for a start, if the log is longer than that. It is reserved again when there
    /// is room.
    fn makes_room(&self, connection: &Connection) -> bool {
        let mut reserve = self.lock_reserve();
        let freed_bytes = reserve.kept_bytes();
        reserve.bytes() < Fingerprint::of(&self.log).bytes
            && has_room(connection, &self.database, freed_bytes)
            && reserve.release(ReserveUse::All)
    }

    fn try_later(&mut self, connection: &Connection) {
        let bytes = Pages::of(connection).bytes().min(Fingerprint::of(&self.log).bytes);
        self.try_at = bytes.max(self.bytes_max) + self.bytes_max / 4;
    }

    fn try_to_cut(&self, connection: &Connection, how: &str) -> Result<bool, Error> {
        connection.busy_timeout(self.wait)?;
        let cut = checkpoint_with(connection, how);
        connection.busy_timeout(self.usual_wait)?;
        // SQLite reports it in either way.
        match cut {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
            cut => cut,
        }
    }
}

fn lock(under_way: &Mutex<()>) -> MutexGuard<'_, ()> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock(under_way: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match under_way.try_lock() {
        Ok(free) => Some(free),
        Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::sqlite::config::SqliteConfig;
    use crate::sqlite::database::reserve::Reserve;

    /// One that has held large writes for a minute, of the second that it may.
    fn held(folder: &Path) -> (LogCutter, Connection) {
        let mut config = SqliteConfig::new(folder);
        config.limits.flood_wait_ms = 1000;
        let path = folder.join("some.db");
        std::fs::File::create(&path).unwrap();
        let connection = crate::sqlite::database::connection::open_writer(&path, &config).unwrap();
        let reserve = Arc::new(Mutex::new(Reserve::in_folder(folder, &config.limits)));
        let rounds = sync_channel(1).0;
        let mut cutter = LogCutter::new(&path, &config.limits, reserve, (rounds, UnderWay::default()));
        cutter.holds_since = Instant::now().checked_sub(Duration::from_mins(1));
        (cutter, connection)
    }

    #[test]
    fn nothing_is_held_longer_than_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let (mut cutter, _) = held(folder.path());
        assert_eq!(cutter.holds(), None);
        cutter.holds_since = Some(Instant::now());
        assert!(cutter.holds().is_some_and(|until| Instant::now() < until));
    }

    #[test]
    fn a_log_on_a_full_disk_is_emptied_as_soon_as_nobody_reads() {
        let folder = tempfile::tempdir().unwrap();
        let (mut cutter, writer) = held(folder.path());
        let reader = Connection::open(folder.path().join("some.db")).unwrap();
        let log_bytes = || Fingerprint::of(&log_path(&folder.path().join("some.db"))).bytes;
        let commit = |cutter: &mut LogCutter, number: u32| {
            writer.execute_batch(&format!("CREATE TABLE t{number} (a)")).unwrap();
            cutter.after_commit(&writer, LogCut { empty: false, checkpoint_done: false });
        };
        commit(&mut cutter, 1);
        assert_ne!(log_bytes(), 0, "the disk is not full yet");
        cutter.note_full();
        reader.execute_batch("BEGIN; SELECT * FROM t1").unwrap();
        commit(&mut cutter, 2);
        assert_ne!(log_bytes(), 0, "the reader needs it");
        reader.execute_batch("COMMIT").unwrap();
        let later = Instant::now() + Duration::from_hours(1);
        assert!(cutter.next_try.replace(later).is_some());
        cutter.after_commit(&writer, LogCut { empty: false, checkpoint_done: false });
        assert_ne!(log_bytes(), 0, "writes do not wait for each try");
        cutter.next_try = None;
        cutter.after_commit(&writer, LogCut { empty: false, checkpoint_done: false });
        assert_eq!(log_bytes(), 0);
    }

    #[test]
    fn a_log_that_somebody_else_has_emptied_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut cutter, connection) = held(folder.path());
        cutter.after_commit(&connection, LogCut { empty: false, checkpoint_done: false });
        assert_eq!(cutter.holds_since, None);
    }
}
