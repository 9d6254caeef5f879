//! Leaves nothing of what was purged in the database's files.
//!
//! `secure_delete` overwrites rows where they are deleted. But SQLite moves rows between pages, and leaves copies of them
//! in the unused room of the pages where they were: only VACUUM, which writes the database anew, gets rid of those. What
//! is to be done is noted with the purge itself, so that a server that dies leaves it to its next life.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error};

use crate::checkpoint::free_bytes;

/// What must be left beside the copies of the database.
const MARGIN_BYTES: u64 = 1 << 20;

const NOTE: &str = "UPDATE commits SET to_wipe = 1 WHERE one = 1";

const DONE: &str = "UPDATE commits SET to_wipe = 0 WHERE one = 1";

const IS_TO_WIPE: &str = "SELECT to_wipe FROM commits WHERE one = 1";

const BYTES: &str = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";

/// Has the database written anew, in the transaction that removes something from it.
pub(crate) fn note(db: &Connection) -> Result<(), Error> {
    db.prepare_cached(NOTE)?.execute([])?;
    Ok(())
}

/// What became of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wiped {
    Done,
    /// Somebody reads.
    Blocked,
    /// The disk has less than that.
    NoRoom {
        needed: u64,
    },
}

/// How large the database is, where it is to be written anew; none where that was not noted, or it has more than
/// `bytes_max`.
pub(crate) fn is_due(db: &Connection, bytes_max: u64) -> Result<Option<u64>, Error> {
    if !db.query_row(IS_TO_WIPE, [], |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    let bytes = db.query_row(BYTES, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    if bytes_max < bytes {
        tracing::warn!(
            bytes,
            bytes_max,
            "the database is above limits.wipe_bytes: copies of what was purged may stay in its unused room"
        );
        return Ok(None);
    }
    Ok(Some(bytes))
}

/// Writes the database anew, which has so many bytes. Everybody who writes waits.
pub(crate) fn wipe(db: &Connection, path: &Path, bytes: u64) -> Result<Wiped, Error> {
    if let Some(needed) = lacks_room(path, &temporary_folder(), bytes) {
        return Ok(Wiped::NoRoom { needed });
    }
    db.execute_batch("VACUUM")?;
    db.execute(DONE, [])?;
    Ok(Wiped::Done)
}

/// The new database is written to a temporary file, then to the log. Gives what that needs, where there is less.
fn lacks_room(path: &Path, temporary: &Path, bytes: u64) -> Option<u64> {
    // The log has a head for each page, and its index.
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
    // Where it cannot be known, it is tried.
    let lacks = |&(at, needed): &(&Path, u64)| free_bytes(at).is_ok_and(|free| free < needed);
    needs.into_iter().find(lacks).map(|(_, needed)| needed)
}

/// Where SQLite makes temporary files.
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
