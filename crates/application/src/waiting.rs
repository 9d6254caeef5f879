//! Agents that wait for a place among those that run: how many there are, and how many there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts those that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom(Arc<AtomicUsize>);

/// One that waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl WaitingRoom {
    pub(crate) fn enter(&self) -> Waiting {
        self.0.fetch_add(1, Ordering::SeqCst);
        Waiting(Arc::clone(&self.0))
    }

    /// Lets one more in, unless so many are there.
    pub(crate) fn enter_unless(&self, most: usize) -> Option<Waiting> {
        let entered = self.0.fetch_add(1, Ordering::SeqCst) < most;
        // What is dropped has been counted for a moment only.
        let waiting = Waiting(Arc::clone(&self.0));
        entered.then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
