//! What is being carried out for other nodes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What this node is carrying out: letters, or the errands of agents. Each look at the store finds them again until
/// they are done.
#[derive(Debug)]
pub(crate) struct Underway<T: Ord + Copy>(Arc<Mutex<BTreeSet<T>>>);

/// Something that is being carried out, until this is dropped.
#[derive(Debug)]
pub(crate) struct Begun<T: Ord + Copy> {
    what: T,
    all: Arc<Mutex<BTreeSet<T>>>,
}

impl<T: Ord + Copy> Default for Underway<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord + Copy> Underway<T> {
    /// `None` if it is being carried out already.
    pub(crate) fn begin(&self, what: T) -> Option<Begun<T>> {
        lock(&self.0).insert(what).then(|| Begun { what, all: Arc::clone(&self.0) })
    }

    pub(crate) fn has(&self, what: T) -> bool {
        lock(&self.0).contains(&what)
    }

    pub(crate) fn all(&self) -> Vec<T> {
        lock(&self.0).iter().copied().collect()
    }
}

impl<T: Ord + Copy> Drop for Begun<T> {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.what);
    }
}

fn lock<T>(all: &Mutex<BTreeSet<T>>) -> MutexGuard<'_, BTreeSet<T>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_in_a_panic_can_begin_again() {
        let underway = Underway::default();
        let begun = underway.begin(1).unwrap();
        assert!(underway.begin(1).is_none());
        assert_eq!(underway.all(), [1]);
        let work = std::thread::spawn(move || {
            let _begun = begun;
            panic!("it fails");
        });
        work.join().unwrap_err();
        assert!(underway.begin(1).is_some());
    }
}
