//! Counts the agents that wait for a slot, and limits how many may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the agents that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom(Arc<AtomicUsize>);

/// One agent that waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl WaitingRoom {
    pub(crate) fn enter(&self) -> Waiting {
        self.0.fetch_add(1, Ordering::SeqCst);
        Waiting(Arc::clone(&self.0))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Adds one more if fewer than `most` agents wait.
    pub(crate) fn enter_if_fewer_than(&self, most: usize) -> Option<Waiting> {
        let entered = self.0.fetch_add(1, Ordering::SeqCst) < most;
        // If there was no room, this takes the agent out again. A concurrent call may have counted it.
        let waiting = Waiting(Arc::clone(&self.0));
        entered.then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
