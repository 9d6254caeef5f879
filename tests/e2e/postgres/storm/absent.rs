//! Which nodes are away, and which guests wait for that.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::PATIENCE;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a guest waits for the node of an agent to go away, before it does something with the agent.
const UNTIL_AWAY: Duration = Duration::from_secs(6);

/// Guests look before they ask, so that they know what they have tried.
#[derive(Clone, Default)]
pub(super) struct Absent(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    away: BTreeSet<String>,
    /// Will soon be away. Who waits for that goes on waiting.
    leaving: BTreeSet<String>,
    /// Each guest that waits has its node in it.
    awaited: Vec<String>,
    /// How many guests that waited have seen their node go away.
    seen: usize,
}

impl Absent {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, node: &str) -> bool {
        self.known().away.contains(node)
    }

    pub(super) fn set(&self, node: String, is_away: bool) {
        let mut known = self.known();
        known.leaving.remove(&node);
        if is_away {
            known.away.insert(node);
        } else {
            known.away.remove(&node);
        }
    }

    /// Waits until a node is away, or long enough. Returns whether it is away.
    pub(super) async fn until_away(&self, node: &str) -> bool {
        let started = Instant::now();
        self.known().awaited.push(node.to_owned());
        loop {
            {
                let mut known = self.known();
                let is_away = known.away.contains(node);
                if is_away || !known.leaving.contains(node) && UNTIL_AWAY <= started.elapsed() {
                    let its_place = known.awaited.iter().position(|awaited| awaited == node);
                    known.awaited.swap_remove(its_place.expect("it waits"));
                    known.seen += usize::from(is_away);
                    return is_away;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until a guest waits for a node to be away, which must go away then. Returns how many guests have seen
    /// their node go away so far.
    pub(super) async fn until_awaited(&self, node: &str) -> usize {
        let started = Instant::now();
        loop {
            {
                let mut known = self.known();
                if known.awaited.iter().any(|awaited| awaited == node) {
                    known.leaving.insert(node.to_owned());
                    return known.seen;
                }
            }
            assert!(started.elapsed() < PATIENCE, "no guest waits for {node}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until more guests than these have seen it.
    pub(super) async fn until_seen(&self, before: usize) {
        let started = Instant::now();
        while self.known().seen == before {
            assert!(started.elapsed() < PATIENCE, "no guest sees it");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
