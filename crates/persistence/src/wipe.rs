//! Leaves nothing of what was purged in the database's files.
//!
//! `secure_delete` overwrites rows where they are deleted. But SQLite moves rows between pages, and leaves copies of them
//! in the unused room of the pages where they were: only VACUUM, which writes the database anew, gets rid of those. What
//! is to be done is noted with the purge itself, so that a server that dies leaves it to its next life.

use rusqlite::{Connection, Error};

const NOTE: &str = "UPDATE commits SET to_wipe = 1 WHERE one = 1";

const DONE: &str = "UPDATE commits SET to_wipe = 0 WHERE one = 1";

const IS_TO_WIPE: &str = "SELECT to_wipe FROM commits WHERE one = 1";

const BYTES: &str = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";

/// Has the database written anew, in the transaction that removes something from it.
pub(crate) fn note(db: &Connection) -> Result<(), Error> {
    db.prepare_cached(NOTE)?.execute([])?;
    Ok(())
}

/// Writes the database anew where that was noted, unless it has more than `bytes_max`. Everybody who writes waits. Gives
/// whether it did.
pub(crate) fn wipe(db: &Connection, bytes_max: u64) -> Result<bool, Error> {
    if !db.query_row(IS_TO_WIPE, [], |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    let bytes = db.query_row(BYTES, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    if bytes_max < bytes {
        return Ok(false);
    }
    db.execute_batch("VACUUM")?;
    db.execute(DONE, [])?;
    Ok(true)
}
