//! At most one fetch of older events at a time for each journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Lets one reader of a journal fetch at a time. While one does, the others wait for its end, because it probably
/// brings the events that they want too.
#[derive(Debug, Default)]
pub(crate) struct FetchLock {
    running: AtomicBool,
    ended: Notify,
}

impl FetchLock {
    /// Lets the caller fetch. `None` if another task fetches now.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Fetching> {
        let free = !self.running.swap(true, Ordering::AcqRel);
        free.then(|| Fetching(Arc::clone(self)))
    }

    /// Waits until a fetch ends. The wait begins with this call and not with the first poll, so
    /// the caller can still check whether a fetch runs.
    pub(crate) fn next_end(&self) -> impl Future<Output = ()> {
        self.ended.notified()
    }
}

/// A fetch that runs. Dropping it ends the fetch and wakes the readers that wait, also after an error.
pub(crate) struct Fetching(Arc<FetchLock>);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
        self.0.ended.notify_waiters();
    }
}
