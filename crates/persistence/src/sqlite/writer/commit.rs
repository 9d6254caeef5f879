//! One transaction and its outcome.
//!
//! A COMMIT that returned an error may still have committed. Therefore each transaction also increments the number in
//! the table `commits`. After an error the connection is closed, a new connection reads the number, and the number
//! tells whether the transaction was committed.

use std::sync::Arc;
#[cfg(test)]
use std::{collections::VecDeque, sync::Mutex};

use rusqlite::{Connection, Error, ErrorCode, OptionalExtension};
use tokenrail_ports::StoreError;

use super::Writer;
use crate::sqlite::checkpoint::checkpoint_all;
use crate::sqlite::command::Task;
use crate::sqlite::database::connection::open_writer;
use crate::sqlite::error::store_error;

/// Increments the number. Does not use RETURNING, for which SQLite would make a temporary table in each transaction.
pub(crate) const NEXT_NUMBER: &str = "UPDATE commits SET number = number + 1 WHERE one = 1";

pub(crate) const NUMBER: &str = "SELECT number FROM commits WHERE one = 1";

/// The outcome of a transaction.
pub(super) enum CommitOutcome {
    /// It is durable.
    Done,
    /// A task failed, and everything was rolled back.
    Spoilt(StoreError),
    /// Nothing was saved.
    NotDone(Arc<Error>),
    /// It may have been saved or not, even after the next start.
    Unknown(Arc<Error>),
}

impl CommitOutcome {
    /// Nothing was saved, because the disk is full.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Spoilt(error) => matches!(error, StoreError::Full),
            Self::NotDone(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Done | Self::Unknown(_) => false,
        }
    }
}

/// Where one try failed.
enum TryError {
    Task(StoreError),
    /// Before the COMMIT.
    Early(Error),
    /// At the COMMIT of the transaction with this number.
    Commit(Error, i64),
}

impl Writer {
    /// Runs the tasks in one transaction. A COMMIT that failed and is known to be undone is retried with the same
    /// contents.
    pub(super) fn commit(&mut self, tasks: &mut [Box<dyn Task>]) -> CommitOutcome {
        let mut tries = 1;
        loop {
            match self.try_commit(tasks) {
                Ok(()) => return CommitOutcome::Done,
                Err(TryError::Task(error)) => return CommitOutcome::Spoilt(error),
                Err(TryError::Early(error)) => return CommitOutcome::NotDone(Arc::new(error)),
                Err(TryError::Commit(error, number)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, tries, "a commit failed");
                    match self.was_committed(number) {
                        Ok(true) => return CommitOutcome::Done,
                        Ok(false) if never_written(&error) => return CommitOutcome::NotDone(Arc::new(error)),
                        Ok(false) if tries < self.config.limits.commit_tries => tries += 1,
                        Ok(false) | Err(_) => return CommitOutcome::Unknown(Arc::new(error)),
                    }
                }
            }
        }
    }

    fn try_commit(&mut self, tasks: &mut [Box<dyn Task>]) -> Result<(), TryError> {
        #[cfg(test)]
        let fault = self.faults.lock().unwrap().pop_front();
        let connection = self.connection().map_err(TryError::Early)?;
        let transaction = OpenTransaction::begin(connection).map_err(TryError::Early)?;
        for task in tasks {
            // `WaitingCommand` (`sqlite/command.rs`) keeps the answer. Its `WriteCommand` has the statements: of an
            // append in `statements/append.rs`, of a launch or a cancel in `statements/commands.rs`.
            task.run(transaction.connection).map_err(TryError::Task)?;
            transaction.check_open().map_err(|error| TryError::Task(store_error(error)))?;
        }
        let number = transaction.next_number().map_err(TryError::Early)?;
        #[cfg(test)]
        if let Some(fault) = fault {
            return fault.strike(transaction, number);
        }
        transaction.commit().map_err(|error| TryError::Commit(error, number))
    }

    /// Opens a new connection and checks whether the transaction was committed. If it was, a checkpoint makes it
    /// durable: after a failed flush, the operating system may have dropped pages that it did not write.
    fn was_committed(&mut self, number: i64) -> Result<bool, Error> {
        self.connection = None;
        let connection = self.connection()?;
        let found: Option<i64> = connection.query_row(NUMBER, [], |row| row.get(0)).optional()?;
        let committed = found == Some(number);
        if committed && !checkpoint_all(connection)? {
            return Err(Error::InvalidQuery);
        }
        Ok(committed)
    }

    /// The connection, reopened if it was closed.
    fn connection(&mut self) -> Result<&mut Connection, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open_writer(&self.path, &self.config)?,
        };
        Ok(self.connection.insert(connection))
    }
}

/// A transaction that is rolled back if it is dropped without COMMIT. BEGIN and COMMIT are prepared only once;
/// `rusqlite::Transaction` prepares them each time.
struct OpenTransaction<'a> {
    connection: &'a Connection,
}

impl<'a> OpenTransaction<'a> {
    fn begin(connection: &'a Connection) -> Result<Self, Error> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection })
    }

    /// Some errors, such as a failed read of the disk, make SQLite roll back the whole transaction by itself. Without
    /// this check, what other tasks have written before would be lost, and what follows would be committed statement by
    /// statement.
    fn check_open(&self) -> Result<(), Error> {
        if !self.connection.is_autocommit() {
            return Ok(());
        }
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
        Err(Error::SqliteFailure(code, Some("SQLite has rolled back the transaction after an error".into())))
    }

    /// Increments the number in the table `commits`, and returns it.
    fn next_number(&self) -> Result<i64, Error> {
        self.connection.prepare_cached(NEXT_NUMBER)?.execute([])?;
        self.connection.prepare_cached(NUMBER)?.query_row([], |row| row.get(0))
    }

    fn commit(self) -> Result<(), Error> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        // SQLite may have rolled it back by itself: see `check_open`.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot roll back a transaction");
        }
    }
}

/// Errors that occur before the last page of the log, which makes the commit, is written.
fn never_written(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// What the next commits do instead of working.
#[cfg(test)]
pub(crate) type CommitFaults = Arc<Mutex<VecDeque<CommitFault>>>;

/// A COMMIT that fails.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitFault {
    /// It works.
    None,
    /// It was done, and an I/O error is reported.
    Done,
    /// It was not done, and an I/O error is reported.
    NotDone,
}

#[cfg(test)]
impl CommitFault {
    fn strike(self, transaction: OpenTransaction<'_>, number: i64) -> Result<(), TryError> {
        match self {
            Self::None => return transaction.commit().map_err(|error| TryError::Commit(error, number)),
            Self::Done => transaction.commit().unwrap(),
            Self::NotDone => transaction.connection.execute_batch("ROLLBACK").unwrap(),
        }
        let io_error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        Err(TryError::Commit(Error::SqliteFailure(io_error, None), number))
    }
}
