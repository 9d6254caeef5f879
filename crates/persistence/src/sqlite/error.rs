//! What errors of SQLite mean to a caller.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Error, ErrorCode};
use tokenrail_ports::StoreError;

/// Why the data folder, or the database of SQLite in it, could not be opened. A store on PostgreSQL has a data folder
/// too.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the data folder {folder:?} is in use by another server; stop it, or choose another folder with --data-dir"
    )]
    Locked { folder: PathBuf },
    #[error(
        "the data of the folder {folder:?} is in {used}; {advice}, or choose another folder with --data-dir"
    )]
    OtherDatabase { folder: PathBuf, used: &'static str, advice: &'static str },
    /// If a new folder is to be created.
    #[error("the folder {folder:?} is not empty; choose an empty folder or one that does not exist yet")]
    NotEmpty { folder: PathBuf },
    #[error(
        "the database was written by a newer version: its schema is {found}, but this program supports \
         schemas up to {known}; install the newer version"
    )]
    NewerSchema { found: i64, known: i64 },
    /// Only if nothing may be changed: a start migrates the schema.
    #[error(
        "the database was written by an older version; the next start of the server migrates it \
         ({})", migrations(*missing)
    )]
    OlderSchema { missing: usize },
    #[error("{path:?} is another program's database; choose another folder with --data-dir")]
    Foreign { path: PathBuf },
    #[error("SQLite {found} has known bugs that lose data; version 3.51.3 or later is required")]
    SqliteTooOld { found: &'static str },
    #[error("{path:?} is not writable; check its owner and permissions")]
    NotWritable { path: PathBuf },
    #[error(
        "the file {path:?} does not contain the identity of the data folder; restore it from a backup, or delete \
         it to let this server join the database as a new node, which does not continue the old node's agents"
    )]
    NoNodeId { path: PathBuf },
    #[error("the disk is full; free up space on it")]
    Full,
    #[error("the database {path:?} is corrupt: {problem}")]
    Corrupt { path: PathBuf, problem: String },
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot open the database {path:?}")]
    Sqlite { path: PathBuf, source: Error },
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::NotWritable { path },
            io::ErrorKind::StorageFull => Self::Full,
            _ => Self::Io { path, source },
        }
    }

    /// If SQLite cannot create the index of its log, it reports only a general failure.
    pub(crate) fn may_be_for_want_of_room(&self) -> bool {
        matches!(self, Self::Full | Self::Sqlite { .. } | Self::Io { .. })
    }

    pub(crate) fn sqlite(path: &Path, source: Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::NotWritable { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, problem: format!("{source}; nothing was changed; restore a backup") }
            }
            _ => Self::Sqlite { path, source },
        }
    }
}

fn migrations(missing: usize) -> String {
    match missing {
        1 => "1 migration to apply".to_owned(),
        more => format!("{more} migrations to apply"),
    }
}

/// The error as callers distinguish it.
pub(crate) fn store_error(error: Error) -> StoreError {
    shared_store_error(&Arc::new(error))
}

/// Like [`store_error`], for an error that several callers receive.
pub(crate) fn shared_store_error(error: &Arc<Error>) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(_) => StoreError::Unavailable(Box::new(Arc::clone(error))),
        None => match **error {
            Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Unavailable(Box::new(Arc::clone(error))),
        },
    }
}
