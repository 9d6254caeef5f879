//! How many connections to one host are being opened at the same time.
//!
//! The first write on a new connection, its barrier, has no answer while a synchronous standby is away. The server
//! keeps the process of such a connection until the standby is back, even if the connection is closed. So a connection
//! holds its place until its barrier is answered, the connection breaks, or another server takes over. If all places
//! are held like this, no further connection is opened: a node uses up only a few connections of the server, however
//! long the standby is away.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::postgres::database::failures::{ChangeFailure, UnknownCause};

/// The places of one host.
pub(crate) struct OpeningPlaces {
    free: Arc<Semaphore>,
    all: usize,
    /// How many of them are held by a connection whose barrier was not answered in time.
    unanswered: Arc<AtomicUsize>,
    /// The barriers under way. Aborted with this, which closes their connections.
    barriers: Mutex<JoinSet<()>>,
}

/// The right to open a connection, as long as it is held.
pub(crate) struct OpeningPlace {
    _permit: OwnedSemaphorePermit,
}

/// A barrier that is answered late, if ever.
struct UnansweredCount(Arc<AtomicUsize>);

impl UnansweredCount {
    fn begin(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for UnansweredCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl OpeningPlaces {
    pub(crate) fn new(places: usize) -> Self {
        let all = places.max(1);
        let free = Arc::new(Semaphore::new(all));
        Self { free, all, unanswered: Arc::default(), barriers: Mutex::default() }
    }

    /// Whether no place becomes free before a barrier is answered that is late already.
    pub(crate) fn are_blocked(&self) -> bool {
        self.all <= self.unanswered.load(Ordering::Acquire)
    }

    /// Waits for a place at most this long.
    pub(crate) async fn take(&self, wait: Duration) -> Option<OpeningPlace> {
        let place = timeout(wait, Arc::clone(&self.free).acquire_owned()).await;
        place.ok()?.ok().map(|permit| OpeningPlace { _permit: permit })
    }

    /// Waits for the answer to a barrier at most this long. It holds the place until there is an answer, also if
    /// nobody waits any more.
    pub(crate) async fn pass(
        &self,
        place: OpeningPlace,
        barrier: impl Future<Output = Result<(), ChangeFailure>> + Send + 'static,
        wait: Duration,
        runtime: &Handle,
    ) -> Result<(), ChangeFailure> {
        let (tell, told) = oneshot::channel();
        let unanswered = Arc::clone(&self.unanswered);
        let passing = async move {
            let _place = place;
            let mut barrier = Box::pin(barrier);
            if let Ok(answer) = timeout(wait, &mut barrier).await {
                // The caller may be gone.
                let _gone = tell.send(answer);
                return;
            }
            let _unanswered = UnansweredCount::begin(unanswered);
            let _gone = tell.send(Err(ChangeFailure::Unknown(UnknownCause::TimedOut(wait))));
            tracing::warn!(
                "the PostgreSQL server does not answer the first write on a new connection; if it has a synchronous \
                 standby, check that the standby runs"
            );
            // Nobody knows by now whether it was durable in time. The connection is closed.
            let _late = barrier.await;
        };
        {
            let mut barriers = self.barriers.lock().unwrap_or_else(PoisonError::into_inner);
            while barriers.try_join_next().is_some() {}
            barriers.spawn_on(passing, runtime);
        }
        // It ends without an answer only with the runtime.
        told.await.unwrap_or_else(|_| Err(ChangeFailure::Unknown(UnknownCause::TimedOut(wait))))
    }
}
