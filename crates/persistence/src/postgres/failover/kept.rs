//! What was acknowledged lately.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokio::time::Instant;

use crate::postgres::command::{KeptChange, NodeFact};
use crate::postgres::statements::append::PreparedAppend;

/// What was acknowledged lately, the oldest first. The bytes are those that were sent: nothing is copied.
pub(crate) struct Kept {
    entries: Mutex<Entries>,
    keep_for: Duration,
    bytes_max: usize,
}

#[derive(Clone)]
pub(crate) enum KeptEntry {
    Append(Arc<PreparedAppend>),
    /// Of a command.
    Change(Arc<dyn KeptChange>),
}

impl KeptEntry {
    /// About how much memory it holds.
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.bytes_in_memory(),
            Self::Change(change) => change.bytes(),
        }
    }

    /// The only agent that it is about.
    pub(super) fn agent(&self) -> Option<AgentId> {
        match self {
            Self::Append(append) => Some(append.agent()),
            Self::Change(change) => change.agent(),
        }
    }
}

/// Another server has taken over, and may lack what this one has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another PostgreSQL server has taken over meanwhile")]
pub(crate) struct Superseded;

#[derive(Default)]
struct Entries {
    queue: VecDeque<Entry>,
    /// The newest ones about the node itself that were dropped from the queue, one of each kind. Without them, the node
    /// would not be known after a failover.
    of_the_node: Vec<Entry>,
    bytes: usize,
    /// The number of the newest entry.
    newest: u64,
    /// What was acknowledged on a lower one does not count.
    timeline: u32,
    /// Whether they are being repeated. Until that is over, none becomes too old.
    are_repeated: bool,
}

struct Entry {
    number: u64,
    at: Instant,
    bytes: usize,
    what: KeptEntry,
}

impl Entries {
    /// However long a failover takes, the last moments before it are still there: only what is acknowledged later, by the
    /// same server, makes something too old.
    fn drop_old(&mut self, now: Instant, keep_for: Duration) {
        while self.queue.front().is_some_and(|oldest| keep_for < now.duration_since(oldest.at)) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(entry) = self.queue.pop_front() {
            self.bytes -= entry.bytes;
            if let Some(fact) = entry.of_the_node() {
                self.of_the_node.retain(|older| older.of_the_node() != Some(fact));
                self.of_the_node.push(entry);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.of_the_node.iter().chain(&self.queue)
    }
}

impl Entry {
    fn of_the_node(&self) -> Option<NodeFact> {
        match &self.what {
            KeptEntry::Change(change) => change.of_the_node(),
            KeptEntry::Append(_) => None,
        }
    }
}

impl Kept {
    pub(crate) fn new(keep_for: Duration, bytes_max: usize) -> Self {
        Self { entries: Mutex::default(), keep_for, bytes_max }
    }

    /// Keeps an entry, and drops older ones. What says something about the node itself stays.
    pub(super) fn keep(&self, timeline: u32, now: Instant, entry: KeptEntry) -> Result<(), Superseded> {
        let bytes = entry.bytes();
        let mut entries = self.lock();
        if timeline < entries.timeline {
            return Err(Superseded);
        }
        entries.newest += 1;
        entries.bytes += bytes;
        let number = entries.newest;
        entries.queue.push_back(Entry { number, at: now, bytes, what: entry });
        while self.bytes_max < entries.bytes {
            entries.drop_oldest();
        }
        entries.drop_old(now, self.keep_for);
        Ok(())
    }

    /// The server of this timeline has answered, and there is nothing to keep, as for the beat of a node that rests.
    /// Otherwise, what is old would be repeated after a failover that has not lost it.
    pub(super) fn age(&self, timeline: u32, now: Instant) {
        let mut entries = self.lock();
        if timeline == entries.timeline && !entries.are_repeated {
            entries.drop_old(now, self.keep_for);
        }
    }

    /// From here on, what was acknowledged on an older timeline does not count.
    pub(super) fn begin(&self, timeline: u32) {
        let mut entries = self.lock();
        entries.timeline = entries.timeline.max(timeline);
        entries.are_repeated = true;
    }

    /// The entries after this number.
    pub(super) fn after(&self, number: u64) -> Vec<(u64, KeptEntry)> {
        let entries = self.lock();
        let later = entries.all().filter(|entry| number < entry.number);
        later.map(|entry| (entry.number, entry.what.clone())).collect()
    }

    /// The changes that are about the node itself.
    pub(super) fn of_the_node(&self) -> Vec<Arc<dyn KeptChange>> {
        let entries = self.lock();
        let changes = entries.all().filter_map(|entry| match &entry.what {
            KeptEntry::Change(change) => change.of_the_node().map(|_| Arc::clone(change)),
            KeptEntry::Append(_) => None,
        });
        changes.collect()
    }

    /// All entries are repeated: they were acknowledged now.
    pub(super) fn renew(&self, now: Instant) {
        let mut entries = self.lock();
        entries.are_repeated = false;
        entries.queue.iter_mut().for_each(|entry| entry.at = now);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
