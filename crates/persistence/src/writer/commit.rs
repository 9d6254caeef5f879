//! One transaction, and what became of it.
//!
//! A failed COMMIT may have committed. So each transaction also raises the number in the table `commits`; after
//! a failure the connection is closed, a new one looks at the number, and that tells about all of it.

use std::sync::Arc;
#[cfg(test)]
use std::{collections::VecDeque, sync::Mutex};

use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, TransactionBehavior};
use tokenrail_ports::StoreError;

use super::{Task, Writer};
use crate::checkpoint::take_over_all;
use crate::connection::open_writer;

const NEXT_NUMBER: &str = "
    UPDATE commits
    SET number = number + 1
    WHERE one = 1
    RETURNING number";

const NUMBER: &str = "SELECT number FROM commits WHERE one = 1";

/// What became of a transaction.
pub(super) enum Outcome {
    /// It is durable.
    Done,
    /// A task could not be done, and everything was undone.
    Spoilt(StoreError),
    /// Nothing was saved.
    NotDone(Arc<Error>),
    /// It may be there or not, also after the next start.
    Unknown(Arc<Error>),
}

impl Outcome {
    /// Nothing was saved, for the disk is full.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Spoilt(error) => matches!(error, StoreError::Full),
            Self::NotDone(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Done | Self::Unknown(_) => false,
        }
    }
}

/// How one try failed.
enum TryError {
    Task(StoreError),
    /// Before the COMMIT.
    Early(Error),
    /// At the COMMIT of the transaction with this number.
    Commit(Error, i64),
}

impl Writer {
    /// Runs the tasks in one transaction. A COMMIT that failed and is known not to be done is tried again, with
    /// the same contents.
    pub(super) fn commit(&mut self, tasks: &mut [Box<dyn Task>]) -> Outcome {
        let mut tries = 1;
        loop {
            match self.try_commit(tasks) {
                Ok(()) => return Outcome::Done,
                Err(TryError::Task(error)) => return Outcome::Spoilt(error),
                Err(TryError::Early(error)) => return Outcome::NotDone(Arc::new(error)),
                Err(TryError::Commit(error, number)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, tries, "a commit failed");
                    match self.was_committed(number) {
                        Ok(true) => return Outcome::Done,
                        Ok(false) if never_written(&error) => return Outcome::NotDone(Arc::new(error)),
                        Ok(false) if tries < self.config.limits.commit_tries => tries += 1,
                        Ok(false) | Err(_) => return Outcome::Unknown(Arc::new(error)),
                    }
                }
            }
        }
    }

    fn try_commit(&mut self, tasks: &mut [Box<dyn Task>]) -> Result<(), TryError> {
        #[cfg(test)]
        let fault = self.faults.lock().unwrap().pop_front();
        let connection = self.connection().map_err(TryError::Early)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(TryError::Early)?;
        // Dropped without COMMIT, the transaction is rolled back.
        for task in tasks {
            task.run(&transaction).map_err(TryError::Task)?;
        }
        let number = transaction
            .prepare_cached(NEXT_NUMBER)
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(TryError::Early)?;
        #[cfg(test)]
        if let Some(fault) = fault {
            return fault.strike(transaction, number);
        }
        transaction.commit().map_err(|error| TryError::Commit(error, number))
    }

    /// Opens a new connection and looks whether the transaction is there. If it is, it is made durable in
    /// another way: after a flush that failed, the system may have forgotten what it did not write.
    fn was_committed(&mut self, number: i64) -> Result<bool, Error> {
        self.connection = None;
        let connection = self.connection()?;
        let found: Option<i64> = connection.query_row(NUMBER, [], |row| row.get(0)).optional()?;
        let committed = found == Some(number);
        if committed && !take_over_all(connection)? {
            return Err(Error::InvalidQuery);
        }
        Ok(committed)
    }

    /// The connection, opened again where it had to be given up.
    fn connection(&mut self) -> Result<&mut Connection, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open_writer(&self.path, &self.config)?,
        };
        Ok(self.connection.insert(connection))
    }
}

/// Errors that come before the log's last page, which is what makes a commit, has been written.
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
    fn strike(self, transaction: rusqlite::Transaction<'_>, number: i64) -> Result<(), TryError> {
        match self {
            Self::None => return transaction.commit().map_err(|error| TryError::Commit(error, number)),
            Self::Done => transaction.commit().unwrap(),
            Self::NotDone => transaction.rollback().unwrap(),
        }
        let io_error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        Err(TryError::Commit(Error::SqliteFailure(io_error, None), number))
    }
}
