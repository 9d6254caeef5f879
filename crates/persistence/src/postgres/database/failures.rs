//! Why there is no connection, and why a change is not known to be saved.

use std::time::Duration;

use tokenrail_ports::StoreError;
use tokio_postgres::Error;

use crate::postgres::error::{QueryFailure, WrongServer};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectFailure {
    #[error("cannot connect to the PostgreSQL server")]
    Failed(#[from] Error),
    #[error("the PostgreSQL server did not answer within {0:?}")]
    TimedOut(Duration),
    /// As many connections are being opened as may be, and their first writes have no answer.
    #[error(
        "no new connection could be opened within {0:?}, because the PostgreSQL server does not answer the first write \
         on the connections that are being opened"
    )]
    NoPlace(Duration),
    #[error(transparent)]
    WrongServer(#[from] WrongServer),
    /// Even if it is promoted before the first write: nobody knows which timeline that is on.
    #[error("the PostgreSQL server is a standby and accepts no writes")]
    Standby,
    /// The connection is there, but it is not known whether what it shows is durable.
    #[error("the first write on a new connection failed")]
    NoBarrier(#[from] ChangeFailure),
    /// Nothing may be read or written before this is done.
    #[error("changes from before the failover of the database could not be saved again")]
    NotHealed(#[source] ChangeFailure),
}

impl ConnectFailure {
    /// Whether a server has answered.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Failed(error) => error.as_db_error().is_some(),
            Self::Standby | Self::NoBarrier(_) | Self::NotHealed(_) | Self::WrongServer(_) => true,
            // That no place became free says less than the answer of another host.
            Self::TimedOut(_) | Self::NoPlace(_) => false,
        }
    }
}

/// Why a change is not known to be saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeFailure {
    #[error("the change was not saved")]
    NotSaved(#[source] QueryFailure),
    #[error("the change may have been saved")]
    Unknown(#[source] UnknownCause),
}

/// Why the outcome of a commit is unknown, or why none was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownCause {
    #[error("the connection broke")]
    Broken(#[source] Error),
    #[error("the PostgreSQL server did not answer within {0:?}")]
    TimedOut(Duration),
    /// For example, the wait for the standby was cancelled.
    #[error("the PostgreSQL server answered with a warning")]
    Warned,
    #[error("another PostgreSQL server has taken over in the meantime")]
    Superseded,
}

impl QueryFailure {
    /// The server did not answer within this time, and no COMMIT was sent. The server or this process may have been
    /// stopped for a while.
    pub(crate) fn unanswered(wait: Duration) -> Self {
        Self::Refused(StoreError::Unreachable(Box::new(UnknownCause::TimedOut(wait))))
    }
}

impl ChangeFailure {
    /// Another server has taken over meanwhile.
    pub(crate) fn superseded() -> Self {
        Self::Unknown(UnknownCause::Superseded)
    }
}
