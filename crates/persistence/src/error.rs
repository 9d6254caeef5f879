//! What SQLite's errors mean to a caller.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Error, ErrorCode};
use tokenrail_ports::StoreError;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {folder:?} is in use by another server")]
    Locked { folder: PathBuf },
    /// Where something new is to be made.
    #[error("the folder {folder:?} is not empty; name one that is, or that is not there yet")]
    NotEmpty { folder: PathBuf },
    #[error("the database was written by a newer version: its schema is {found}, this program knows {known}")]
    NewerSchema { found: i64, known: i64 },
    /// Only where nothing may be changed: a start brings it up to date.
    #[error(
        "the database was written by an older version, {missing} migrations ago; the next start brings it up to date"
    )]
    OlderSchema { missing: usize },
    #[error("{path:?} is a database of another program")]
    Foreign { path: PathBuf },
    #[error("SQLite {found} has known faults that lose data; at least 3.51.3 is needed")]
    SqliteTooOld { found: &'static str },
    #[error("{path:?} cannot be written; check its owner and permissions")]
    NotWritable { path: PathBuf },
    #[error("the disk is full")]
    Full,
    #[error("the database {path:?} is damaged: {problem}")]
    Corrupt { path: PathBuf, problem: String },
    #[error("{path:?} cannot be used")]
    Io { path: PathBuf, source: io::Error },
    #[error("the database {path:?} cannot be opened")]
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

    /// Where SQLite cannot make the index of its log, it says only that something has failed.
    pub(crate) fn may_be_for_want_of_room(&self) -> bool {
        matches!(self, Self::Full | Self::Sqlite { .. } | Self::Io { .. })
    }

    pub(crate) fn sqlite(path: &Path, source: Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::NotWritable { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, problem: source.to_string() }
            }
            _ => Self::Sqlite { path, source },
        }
    }
}

/// What a caller does about it.
pub(crate) fn store_error(error: Error) -> StoreError {
    shared_store_error(&Arc::new(error))
}

/// As [`store_error`], for an error that several callers get.
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
