//! Removes purged data from the files of the database.
//!
//! `secure_delete` overwrites deleted rows. But SQLite moves rows between pages and leaves copies in unused space;
//! only VACUUM, which rewrites the database, removes those. The purge itself records that a wipe is due, so that it
//! survives the death of the server.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error};

use crate::sqlite::database::folder::free_bytes;

/// Free disk space that must remain besides the copies of the database.
const MARGIN_BYTES: u64 = 1 << 20;

const NOTE: &str = "UPDATE commits SET to_wipe = 1 WHERE one = 1";

const DONE: &str = "UPDATE commits SET to_wipe = 0 WHERE one = 1";

const IS_TO_WIPE: &str = "SELECT to_wipe FROM commits WHERE one = 1";

const BYTES: &str = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";

/// Records that a wipe is due, in the transaction that removes data.
pub(crate) fn note(db: &Connection) -> Result<(), Error> {
    db.prepare_cached(NOTE)?.execute([])?;
    Ok(())
}

/// The outcome of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wiped {
    Done,
    /// A reader is active.
    Blocked,
    /// The disk has less free space than this.
    NoRoom {
        needed: u64,
    },
}

/// The size of the database, if a wipe is due; `None` if not, or if the database is larger than `bytes_max`.
pub(crate) fn is_due(db: &Connection, bytes_max: u64) -> Result<Option<u64>, Error> {
    if !db.query_row(IS_TO_WIPE, [], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    let bytes = db.query_row(BYTES, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    if bytes_max < bytes {
        tracing::warn!(
            bytes,
            bytes_max,
            "the database is larger than limits.wipe_bytes, so copies of purged data may remain in its free pages; \
             raise the limit, or run the server on a copy made with `tokenrail backup`"
        );
        return Ok(None);
    }
    Ok(Some(bytes))
}

/// Rewrites the database, which has this many bytes. All other writes wait.
pub(crate) fn wipe(db: &Connection, path: &Path, bytes: u64) -> Result<Wiped, Error> {
    if let Some(needed) = lacks_room(path, &temporary_folder(), bytes) {
        return Ok(Wiped::NoRoom { needed });
    }
    db.execute_batch("VACUUM")?;
    db.execute(DONE, [])?;
    Ok(Wiped::Done)
}

/// The new database is written to a temporary file, then to the log. Returns the space needed if the disk has less.
fn lacks_room(path: &Path, temporary: &Path, bytes: u64) -> Option<u64> {
    // The log has a header for each page, and its index.
    let log_bytes = bytes + bytes / 64 + MARGIN_BYTES;
    let same_disk = match (fs::metadata(path), fs::metadata(temporary)) {
        (Ok(database), Ok(folder)) => database.dev() == folder.dev(),
        _ => false,
    };
    let needs = if same_disk {
        [(path, log_bytes + bytes), (path, 0)]
    } else {
        [(path, log_bytes), (temporary, bytes)]
    };
    // If the free space is unknown, the wipe is tried.
    let lacks = |&(at, needed): &(&Path, u64)| free_bytes(at).is_ok_and(|free| free < needed);
    needs.into_iter().find(lacks).map(|(_, needed)| needed)
}

/// The folder in which SQLite creates temporary files.
fn temporary_folder() -> PathBuf {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].into_iter().map(PathBuf::from);
    named.chain(usual).find(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_not_written_anew_where_the_disk_has_no_room_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let other = Path::new("/dev/shm");
        for temporary in [folder.path(), other] {
            assert_eq!(lacks_room(folder.path(), temporary, 4096), None);
            let huge = 1 << 60;
            assert!(lacks_room(folder.path(), temporary, huge).is_some_and(|needed| huge < needed));
        }
        // Room for one copy is not enough for two.
        let free = free_bytes(folder.path()).unwrap();
        assert!(lacks_room(folder.path(), folder.path(), free / 3 * 2).is_some_and(|needed| free < needed));
    }
}
