//! One request: when it must have ended, and its place among those that run at the same time.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::ChangesError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::run_folder::blocking;

/// A request that was admitted. All clones have one place, which is free again when the last one is dropped.
#[derive(Debug, Clone)]
pub(super) struct Request {
    deadline: Instant,
    place: Arc<OwnedSemaphorePermit>,
}

impl Request {
    /// Waits until the request may run. Its own time begins after that.
    pub(super) async fn admitted(places: &Arc<Semaphore>, time: Duration) -> Result<Self, ChangesError> {
        match timeout(time, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(Self { deadline: Instant::now() + time, place: Arc::new(place) }),
            Ok(Err(_)) | Err(_) => Err(ChangesError::Busy),
        }
    }

    /// Waits for work that blocks. If it takes too long, it goes on, and keeps the place of the request meanwhile.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, ChangesError> {
        let place = Arc::clone(&self.place);
        let work = blocking(move || {
            let done = work();
            drop(place);
            done
        });
        self.in_time(work).await
    }

    /// Waits for something until the deadline.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = io::Result<T>>,
    ) -> Result<T, ChangesError> {
        let done = timeout_at(self.deadline, work).await.map_err(|_| ChangesError::TimedOut)?;
        done.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => ChangesError::TimedOut,
            _ => ChangesError::Failed(error),
        })
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline <= Instant::now()
    }

    /// Work that blocks calls this again and again, because nothing else ends it.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] after the deadline.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_late() { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}
