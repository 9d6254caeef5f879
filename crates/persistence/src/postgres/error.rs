//! What errors of the server and of the connection mean to a caller.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenrail_ports::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    #[error("the address of the database is malformed: {problem}; write postgres://USER@HOST/DATABASE")]
    BadUrl { problem: String },
    #[error(
        "the address of the database contains a password, which other programs could see; remove it, and set \
         storage.password_file or the environment variable PGPASSWORD"
    )]
    PasswordInUrl,
    #[error("cannot use TLS for the database: {problem}")]
    Tls { problem: String },
    #[error("the PostgreSQL server at {hosts} does not answer; start it, or correct the address")]
    Unreachable { hosts: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(
        "the PostgreSQL server refuses the user {user:?}; check the user, the password \
         (storage.password_file or PGPASSWORD) and the server's pg_hba.conf"
    )]
    Refused { user: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("there is no database {database:?} on the PostgreSQL server; create it with CREATE DATABASE")]
    NoDatabase { database: String },
    #[error("PostgreSQL {found} is too old; version 15 or newer is required")]
    ServerTooOld { found: String },
    #[error(
        "the PostgreSQL server accepts no writes: it is a standby, or is set to read-only; set the address of the \
         primary, or all addresses and target_session_attrs=read-write"
    )]
    ReadOnly,
    #[error(
        "the user {user:?} is not allowed to use or create the tables of Tokenrail; make this user the owner of the \
         database {database:?}"
    )]
    NotAllowed { user: String, database: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the database {database:?} belongs to another program; create an empty one for Tokenrail")]
    Foreign { database: String },
    #[error(
        "the database was written by a newer version: it requires schema {required}, but this program \
         supports schemas up to {known}; install the newer version"
    )]
    NewerSchema { required: i32, known: i32 },
    #[error(
        "the move of the data folder {folder} into the database {database:?} is not finished; run it again, or drop \
         the database and create an empty one"
    )]
    UnfinishedMove { database: String, folder: String },
    #[error(
        "a connection pooler in front of PostgreSQL is in transaction or statement mode; set its pool mode to session, \
         or set storage.url to the PostgreSQL server itself"
    )]
    SharedSessions,
    #[error("another server is still migrating the database; try again later")]
    Migrating,
    #[error(
        "the database cannot be migrated, because a long transaction uses its tables{}; end that transaction, or \
         start Tokenrail again later", by(.holder.as_ref())
    )]
    TablesInUse { holder: Option<TableHolder> },
    #[error(transparent)]
    WrongServer(WrongServer),
    #[error("the disk of the PostgreSQL server is full; free up space on it")]
    Full,
    #[error("the PostgreSQL server cannot be used now; try again, or read its log")]
    Server { source: Box<dyn std::error::Error + Send + Sync> },
}

/// A server that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongServer {
    /// Such as a former primary that was started again after its standby had taken over.
    #[error(
        "the PostgreSQL server is on timeline {found}, but Tokenrail has already used timeline {known}: the \
         PostgreSQL server is a former primary, or was restored from an older copy; stop that PostgreSQL server, or \
         make it a standby of the current primary{}", accept(.file.as_deref())
    )]
    Former { found: u32, known: u32, file: Option<PathBuf> },
    #[error(
        "this is not the PostgreSQL server that was used before: its system identifier is {found}, not {known}; \
         correct storage.url, or restart Tokenrail if the database was moved or restored"
    )]
    Another { found: u64, known: u64 },
}

/// A transaction that uses the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableHolder {
    /// The process of its connection on the server.
    pub pid: i32,
    /// How its program calls itself. Empty if it does not say.
    pub application: String,
}

impl fmt::Display for TableHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, application } = self;
        if application.is_empty() {
            write!(f, "process {pid} of the PostgreSQL server")
        } else {
            write!(f, "process {pid} of the PostgreSQL server ({application})")
        }
    }
}

fn by(holder: Option<&TableHolder>) -> String {
    holder.map(|holder| format!(": {holder}")).unwrap_or_default()
}

/// What to do if the server is the right one nevertheless.
fn accept(file: Option<&Path>) -> String {
    file.map(|file| {
        format!("; if it is the right PostgreSQL server, remove {} and restart Tokenrail", file.display())
    })
    .unwrap_or_default()
}

/// Why a read or a change had no effect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryFailure {
    /// The store refuses, or cannot read what it got.
    #[error("refused")]
    Refused(#[from] StoreError),
    #[error("the server or the connection failed")]
    Failed(#[from] Error),
    /// If this command is run again, it sees what the other one did.
    #[error("another command changed the same data first")]
    Again,
}

impl QueryFailure {
    /// The error for a caller, if nothing of the transaction can have been saved.
    pub(crate) fn before_commit(self) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Failed(error) => not_saved(&Arc::new(error)),
            Self::Again => StoreError::Busy,
        }
    }

    /// This error instead, if a unique key is there already.
    pub(crate) fn if_taken(self, taken: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Failed(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => taken(),
            other => other,
        }
    }

    /// Whether the same change may succeed if it is run again at once.
    pub(crate) fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Failed(error) => is_deadlock(error),
            Self::Again => true,
        }
    }
}

/// What an error of a statement says about its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorEffect {
    /// The server has refused it. Nothing of its transaction is saved.
    NotSaved,
    /// The connection broke after the statement was sent, or the server is going down.
    Unknown,
}

/// Whether the statement that ended with this error may have been saved, if it was sent and committed by itself.
pub(crate) fn effect_of(error: &Error) -> ErrorEffect {
    match error.as_db_error() {
        Some(error) if !is_fatal(error) => ErrorEffect::NotSaved,
        _ => ErrorEffect::Unknown,
    }
}

fn is_fatal(error: &DbError) -> bool {
    match error.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(error.severity(), "FATAL" | "PANIC"),
    }
}

/// Whether the same statement may succeed if it is sent again at once: the server chose it to break a deadlock.
pub(crate) fn is_deadlock(error: &Error) -> bool {
    matches!(error.code(), Some(&(SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE)))
}

/// Whether the error concerns the server and not the rows of the statement.
pub(crate) fn is_of_the_server(error: &Error) -> bool {
    !matches!(meaning_of(error.code()), Meaning::Ended | Meaning::Other)
}

/// The error for callers, if nothing was saved.
pub(crate) fn not_saved(error: &Arc<Error>) -> StoreError {
    match meaning_of(error.code()) {
        Meaning::Full => StoreError::Full,
        Meaning::Busy | Meaning::Ended => StoreError::Busy,
        Meaning::Corrupt => StoreError::Corrupt(described(error)),
        Meaning::Elsewhere | Meaning::GoingDown => StoreError::Unreachable(Box::new(Arc::clone(error))),
        Meaning::Other if is_broken(error) => StoreError::Unreachable(Box::new(Arc::clone(error))),
        Meaning::Other => StoreError::Unavailable(Box::new(Arc::clone(error))),
    }
}

/// What a refusal of the server means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Full,
    Busy,
    Corrupt,
    /// The statement took too long, or a person has ended it.
    Ended,
    /// The server takes no writes: another one is the primary now.
    Elsewhere,
    /// The server stops or starts, or has ended the connection.
    GoingDown,
    Other,
}

fn meaning_of(code: Option<&SqlState>) -> Meaning {
    match code {
        Some(&SqlState::DISK_FULL) => Meaning::Full,
        Some(
            &(SqlState::LOCK_NOT_AVAILABLE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::TOO_MANY_CONNECTIONS),
        ) => Meaning::Busy,
        Some(&SqlState::QUERY_CANCELED) => Meaning::Ended,
        Some(&(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED)) => Meaning::Corrupt,
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Meaning::Elsewhere,
        Some(
            &(SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | SqlState::IDLE_SESSION_TIMEOUT
            | SqlState::CONNECTION_EXCEPTION
            | SqlState::CONNECTION_DOES_NOT_EXIST
            | SqlState::CONNECTION_FAILURE),
        ) => Meaning::GoingDown,
        _ => Meaning::Other,
    }
}

/// Whether there is no connection, or none any more.
fn is_broken(error: &Error) -> bool {
    let is_io = <dyn std::error::Error>::is::<std::io::Error>;
    error.is_closed() || std::error::Error::source(error).is_some_and(is_io)
}

/// The error with what the server said: the driver's own text does not contain it.
pub(crate) fn described(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Nothing was saved, because there is no connection.
pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes are those of appendix A of the manual of PostgreSQL 15. The names come from the driver.
    #[test]
    fn each_code_has_its_meaning() {
        let cases = [
            ("53100", Meaning::Full),
            ("55P03", Meaning::Busy),
            ("40P01", Meaning::Busy),
            ("40001", Meaning::Busy),
            ("53300", Meaning::Busy),
            ("57014", Meaning::Ended),
            ("XX001", Meaning::Corrupt),
            ("XX002", Meaning::Corrupt),
            ("25006", Meaning::Elsewhere),
            ("57P01", Meaning::GoingDown),
            ("57P02", Meaning::GoingDown),
            ("57P03", Meaning::GoingDown),
            ("25P03", Meaning::GoingDown),
            ("57P05", Meaning::GoingDown),
            ("08000", Meaning::GoingDown),
            ("08003", Meaning::GoingDown),
            ("08006", Meaning::GoingDown),
            ("23505", Meaning::Other),
        ];
        for (code, meaning) in cases {
            assert_eq!(meaning_of(Some(&SqlState::from_code(code))), meaning, "{code}");
        }
        assert_eq!(meaning_of(None), Meaning::Other);
    }
}
