//! The connections that reads and commands share.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokenrail_ports::StoreError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::orders::closed;
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure};
use crate::postgres::database::link::Link;
use crate::postgres::database::settings::Purpose;
use crate::postgres::error::not_saved;
use crate::postgres::failover::Healer;

/// How long to wait for another connection if no new one can be opened. Most reads take less.
const RETURN_WAIT: Duration = Duration::from_millis(250);

/// A bounded number of connections. If all are in use, a caller waits for one, but not for ever.
pub(crate) struct Pool {
    healer: Arc<Healer>,
    purpose: Purpose,
    places: Arc<Semaphore>,
    /// How long a caller waits, at most.
    wait: Duration,
    idle: Mutex<Vec<Link>>,
    /// Signalled when a connection becomes idle.
    returned: Notify,
    /// Connections that are in use.
    leased: AtomicUsize,
}

/// A connection of the pool. It returns to the pool when this is dropped, unless something was left half-done.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    link: Link,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    /// At most this many connections.
    pub(crate) fn new(healer: Arc<Healer>, purpose: Purpose, connections: usize, wait: Duration) -> Self {
        let places = Arc::new(Semaphore::new(connections.max(1)));
        Self {
            healer,
            purpose,
            places,
            wait,
            idle: Mutex::default(),
            returned: Notify::new(),
            leased: AtomicUsize::new(0),
        }
    }

    /// # Errors
    /// [`StoreError::Busy`] if all connections stay in use for too long, or the failure to open one.
    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let place = timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| StoreError::Busy)?.map_err(|_| closed())?;
        let link = match self.idle_link() {
            Some(link) => link,
            None => match self.healer.connect(self.purpose, &[]).await {
                Ok(link) => link,
                // While a standby is away, no new connection can be used, but those that exist can.
                Err(failure) => self.other_link().await.ok_or_else(|| failure.into_store_error())?,
            },
        };
        self.leased.fetch_add(1, Ordering::AcqRel);
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

    /// A connection that is idle, or becomes idle soon. If none is in use, there is nothing to wait for.
    async fn other_link(&self) -> Option<Link> {
        if self.leased.load(Ordering::Acquire) == 0 {
            return self.idle_link();
        }
        timeout(RETURN_WAIT, self.returned_link()).await.ok()
    }

    /// The next connection that becomes idle.
    async fn returned_link(&self) -> Link {
        loop {
            let mut returned = pin!(self.returned.notified());
            // From here on, none is missed.
            returned.as_mut().enable();
            if let Some(link) = self.idle_link() {
                return link;
            }
            returned.await;
        }
    }

    fn idle_link(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(Link::is_usable)
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
            self.pool.returned.notify_one();
        }
        // Last: a caller that sees no connection in use must find this one among the idle ones.
        self.pool.leased.fetch_sub(1, Ordering::AcqRel);
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
