//! Connections to the database and their settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, OpenFlags};

use crate::sqlite::config::SqliteConfig;

/// Prepared statements that a connection caches: more than exist.
const STATEMENTS: usize = 96;

/// Opens the connection of the writer, or one like it.
pub(crate) fn open_writer(path: &Path, config: &SqliteConfig) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags, config.limits.busy_timeout_ms)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", config.synchronous.pragma())?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted data is overwritten: see `wipe`.
    connection.pragma_update(None, "secure_delete", true)?;
    // A checkpoint inside a commit delays every writer: see `checkpoint`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

pub(crate) fn open_reader(path: &Path, busy_timeout_ms: u32) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags, busy_timeout_ms)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a database to copy it. Nothing in it is changed.
pub(crate) fn open_source(path: &Path, busy_timeout_ms: u32) -> Result<Connection, Error> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX, busy_timeout_ms)
}

fn open(path: &Path, flags: OpenFlags, busy_timeout_ms: u32) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(u64::from(busy_timeout_ms)))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // The plan of a statement does not depend on its bound values. Otherwise SQLite recompiles a statement on a table
    // with a partial index each time values are bound, which takes longer than the rest of an append.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A read error in mapped memory is a signal that kills the process.
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Opens the connections of the reader pool.
#[derive(Debug)]
pub(crate) struct ReaderSource {
    pub(crate) path: PathBuf,
    pub(crate) busy_timeout_ms: u32,
}

impl r2d2::ManageConnection for ReaderSource {
    type Connection = Connection;
    type Error = Error;

    fn connect(&self) -> Result<Connection, Error> {
        open_reader(&self.path, self.busy_timeout_ms)
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), Error> {
        connection.execute_batch("SELECT 1")
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        !connection.is_autocommit()
    }
}
