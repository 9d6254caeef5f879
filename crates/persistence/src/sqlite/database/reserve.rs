//! Disk space that is reserved for a start.
//!
//! SQLite cannot even read without some free space, because a start creates the index of the log, `-shm`. So a start
//! on a full disk frees the reserved space and serves the data that exists. A purge and a long log free it too: both
//! make more room than they take. A part is for the ends of turns: an agent that fills the disk with its own files is
//! ended, and otherwise that end could not be saved.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use crate::sqlite::config::SqliteLimits;

const RESERVE: &str = "reserve";
const FILE_MODE: u32 = 0o600;
/// What a start needs besides the index of the log.
const LEAST_BYTES: u64 = 1 << 20;
/// What the ends of turns may use of it. One end takes about 60 KiB, and ends in the same transaction share most of
/// that.
const ENDS_BYTES: u64 = 1 << 20;
/// The index takes 32 KiB for each 16 MiB of the log, and the log may be longer than its bound for a while.
const LOG_BYTES_PER_BYTE: u64 = 128;

/// The reserved space, shared by everyone who may free it.
pub(crate) type SharedReserve = Arc<Mutex<Reserve>>;

/// The part of the reserved space that a write may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReserveUse {
    None,
    /// The part for the ends of turns. The rest is enough for a start.
    Ends,
    /// All of it: the write makes more room than it takes.
    All,
}

pub(crate) struct Reserve {
    path: PathBuf,
    start_bytes: u64,
    is_kept: bool,
}

impl Reserve {
    pub(crate) fn in_folder(folder: &Path, limits: &SqliteLimits) -> Self {
        let start_bytes = LEAST_BYTES + limits.wal_bytes / LOG_BYTES_PER_BYTE;
        Self { path: folder.join(RESERVE), start_bytes, is_kept: false }
    }

    /// Reserves the space, if it is not reserved already and the disk has as much again.
    pub(crate) fn keep(&mut self) {
        if !self.is_kept {
            // The next call tries again.
            self.is_kept = self.try_to_keep().unwrap_or(false);
        }
    }

    fn try_to_keep(&self) -> io::Result<bool> {
        if self.kept_bytes() == self.bytes() {
            return Ok(true);
        }
        let file = self.open()?;
        if free_bytes(&file)? < 2 * self.bytes() {
            return Ok(false);
        }
        take(&file, self.bytes())?;
        Ok(true)
    }

    /// Reserves again what was reserved before a release in vain, as far as nobody has used it since.
    pub(crate) fn restore(&mut self, kept_bytes: u64) {
        if self.kept_bytes() < kept_bytes {
            // Without it, the next start may find no space.
            self.is_kept = self.try_to_restore(kept_bytes).unwrap_or(false);
        }
    }

    fn try_to_restore(&self, kept_bytes: u64) -> io::Result<bool> {
        let file = self.open()?;
        let bytes = kept_bytes.min(free_bytes(&file)?);
        take(&file, bytes)?;
        Ok(bytes == self.bytes())
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&self.path)
    }

    /// Frees the space on a full disk. Returns false if that frees nothing.
    pub(crate) fn give_up(&mut self) -> bool {
        self.try_to_give_up().unwrap_or(false)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.start_bytes + ENDS_BYTES
    }

    /// How much is reserved now.
    pub(crate) fn kept_bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// Frees the part that such a write may use. Returns false if there is nothing to free.
    pub(crate) fn release(&mut self, wanted: ReserveUse) -> bool {
        let left = match wanted {
            ReserveUse::None => return false,
            ReserveUse::Ends => self.start_bytes,
            ReserveUse::All => 0,
        };
        let released = left < self.kept_bytes()
            && OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(left)).is_ok();
        self.is_kept &= !released;
        released
    }

    fn try_to_give_up(&mut self) -> io::Result<bool> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        if file.metadata()?.len() == 0 || self.start_bytes <= free_bytes(&file)? {
            return Ok(false);
        }
        file.set_len(0)?;
        self.is_kept = false;
        Ok(true)
    }
}

/// Gives the file this length, with space on the disk. If there is none, the file is empty.
fn take(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(0)?;
    if bytes == 0 {
        return Ok(());
    }
    let taken = fallocate(file, FallocateFlags::empty(), 0, bytes);
    if taken.is_err() {
        file.set_len(0)?;
    }
    Ok(taken?)
}

fn free_bytes(file: &File) -> io::Result<u64> {
    let disk = fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_kept_once_and_not_given_up_where_there_is_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::in_folder(folder.path(), &SqliteLimits::default());
        reserve.keep();
        let file = fs::metadata(folder.path().join(RESERVE)).unwrap();
        assert_eq!(file.len(), reserve.bytes());
        let taken = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(reserve.bytes() <= taken, "only {taken} bytes are taken");
        assert!(!reserve.give_up(), "the disk is not full");
        assert!(reserve.is_kept);
    }

    #[test]
    fn room_that_was_released_in_vain_is_reserved_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::in_folder(folder.path(), &SqliteLimits::default());
        reserve.keep();
        for (wanted, kept_bytes) in
            [(ReserveUse::None, reserve.bytes()), (ReserveUse::Ends, reserve.start_bytes)]
        {
            reserve.release(wanted);
            assert!(reserve.release(ReserveUse::All));
            reserve.restore(kept_bytes);
            assert_eq!(reserve.kept_bytes(), kept_bytes, "what an end of a turn uses stays free");
            assert_eq!(reserve.is_kept, kept_bytes == reserve.bytes());
        }
    }

    #[test]
    fn the_ends_of_turns_leave_the_room_for_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::in_folder(folder.path(), &SqliteLimits::default());
        let left = || fs::metadata(folder.path().join(RESERVE)).unwrap().len();
        reserve.keep();
        assert!(reserve.release(ReserveUse::Ends));
        assert_eq!(left(), reserve.start_bytes);
        assert!(!reserve.release(ReserveUse::Ends), "its part is used up");
        assert!(reserve.release(ReserveUse::All));
        assert_eq!(left(), 0);
        reserve.keep();
        assert_eq!(left(), reserve.bytes());
    }
}
