//! The connections that reads and commands share.

use std::sync::{Arc, Mutex, PoisonError};

use tokenrail_ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::orders::closed;
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure};
use crate::postgres::database::link::Link;
use crate::postgres::database::settings::Purpose;
use crate::postgres::error::not_saved;
use crate::postgres::failover::Healer;

/// A bounded number of connections. If all are in use, a caller waits for one. The wait has no bound of its own:
/// callers get connections in the order in which they came, and each read and each try of a command is bounded.
pub(crate) struct Pool {
    healer: Arc<Healer>,
    purpose: Purpose,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Link>>,
}

/// A connection of the pool. It returns to the pool when this is dropped, unless something was left half-done.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    link: Link,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    /// At most this many connections.
    pub(crate) fn new(healer: Arc<Healer>, purpose: Purpose, connections: usize) -> Self {
        let places = Arc::new(Semaphore::new(connections.max(1)));
        Self { healer, purpose, places, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let link = loop {
            match self.pop() {
                Some(link) if link.is_usable() => break link,
                Some(_broken) => {}
                None => {
                    break self
                        .healer
                        .connect(self.purpose, &[])
                        .await
                        .map_err(ConnectFailure::into_store_error)?;
                }
            }
        };
        Ok(Lease { pool: Arc::clone(self), link, _place: place })
    }

    /// Closes all connections, as soon as nobody uses them. Later calls fail.
    pub(crate) fn close(&self) {
        self.places.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.places.is_closed()
    }

    fn pop(&self) -> Option<Link> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Lease {
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.link.is_usable() && !self.pool.places.is_closed() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.link.clone());
        }
    }
}

impl ConnectFailure {
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Failed(error) => not_saved(&Arc::new(error)),
            Self::NoBarrier(ChangeFailure::NotSaved(failure)) => failure.before_commit(),
            Self::WrongServer(wrong) => StoreError::WrongServer(Box::new(wrong)),
            Self::TimedOut(_)
            | Self::NoPlace(_)
            | Self::Standby
            | Self::NoBarrier(_)
            | Self::NotHealed(_) => StoreError::Unreachable(Box::new(self)),
        }
    }
}
