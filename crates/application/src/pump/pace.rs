//! The pace of a run. Its batches grow while the store or the followers are the bottleneck, but less while other agents
//! save.

use tokenrail_domain::Sequence;
use tokenrail_ports::Append;
use tokio::time::Instant;

use super::Pump;
use crate::announce::{announce, hold, release};
use crate::planted::{Bug, correctly};

/// While other agents save, an agent's events that wait for their commit may be this fraction of the limit. The others
/// wait for each of its batches to be parsed and committed.
const SHARE_NEXT_TO_OTHERS: usize = 4;

/// The saved events that are not announced yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    events: usize,
    /// The newest of them.
    head: Sequence,
}

impl Pump {
    /// Whether more output may be read before a batch is saved.
    pub(super) fn has_room(&self) -> bool {
        let limits = &self.core.limits.saving;
        let (events, bytes) = (self.recorder.pending_events(), self.recorder.pending_bytes());
        if events == 0 {
            // Lines without an event cannot be saved before the event that they wait for is read. `enforce_bounds`
            // limits them.
            return true;
        }
        let is_within = |share: usize| {
            events < (limits.pending_events / share).max(1) && bytes < (limits.pending_bytes / share).max(1)
        };
        is_within(1) && (is_within(SHARE_NEXT_TO_OTHERS) || !self.core.savers.has_others(self.agent))
    }

    /// When the next batch is due, if it waits for slow followers and grows meanwhile. `None`: now.
    pub(super) fn put_off(&self) -> Option<Instant> {
        let pending = self.recorder.pending_events();
        if pending == 0 || !self.has_room() {
            return None;
        }
        self.paced_until(self.held_events() + pending)
    }

    /// Announces what has just been saved. If it may wait, it is held back while followers take the batch before it.
    pub(super) fn announce_or_hold(&mut self, saved: &Append, may_wait: bool) {
        let events = self.held_events() + saved.events.len();
        let head = saved.events.last().map(|event| event.sequence);
        self.held = if may_wait && self.paced_until(events).is_some() && hold(&self.tail, saved) {
            head.map(|head| Held { events, head })
        } else {
            announce(&self.core, &self.tail, saved);
            None
        };
    }

    fn held_events(&self) -> usize {
        self.held.map_or(0, |held| held.events)
    }

    /// When the batches that are held back are due. `None` if there are none. Those that are due are announced.
    pub(super) fn held_until(&mut self) -> Option<Instant> {
        let until = self.paced_until(self.held?.events);
        if until.is_none() && correctly(Bug::HeldUntilTheNext) {
            self.release();
        }
        until
    }

    /// Announces the batches that are held back, if there are any. Called before each step that may take long.
    pub(super) fn release(&mut self) {
        if let Some(Held { head, .. }) = self.held.take() {
            release(&self.core, self.agent, &self.tail, head);
        }
    }

    /// Until when so many new events wait for the followers. `None` if they need not wait.
    fn paced_until(&self, events: usize) -> Option<Instant> {
        let limits = &self.core.limits.saving;
        let until = self.tail.pace.wants_until(events, limits.follower_wait_from, limits.follower_wait);
        until.filter(|until| Instant::now() < *until)
    }
}
