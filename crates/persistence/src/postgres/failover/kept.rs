//! What was acknowledged lately.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokio::time::Instant;

use super::dropped::Dropped;
use crate::postgres::command::{KeptBeat, KeptChange, NodeFact};
use crate::postgres::statements::append::PreparedAppend;

/// What was acknowledged lately, the oldest first. The bytes are those that were sent: nothing is copied.
pub(crate) struct Kept {
    entries: Mutex<Entries>,
    keep_for: Duration,
    room: KeptRoom,
}

/// How many bytes are kept, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptRoom {
    pub(crate) bytes: usize,
    /// Of imports, which do not count above: a large one would push out what clients were told.
    pub(crate) import_bytes: usize,
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

    fn is_of_an_import(&self) -> bool {
        match self {
            Self::Append(_) => false,
            Self::Change(change) => change.is_of_an_import(),
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
#[error("another PostgreSQL server has taken over in the meantime")]
pub(crate) struct Superseded;

#[derive(Default)]
struct Entries {
    queue: Queue,
    imports: Queue,
    /// The newest ones about the node itself that were dropped from the queue, one of each kind. Without them, the node
    /// would not be known after a failover.
    of_the_node: Vec<Entry>,
    dropped: Dropped,
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

/// The oldest first.
#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Takes the oldest entry out if there are more bytes than this, or if it is too old. However long a failover
    /// takes, the last moments before it are still there: only later answers of the same server make it too old.
    fn pop(&mut self, bytes_max: usize, (now, keep_for): (Instant, Duration)) -> Option<Entry> {
        let is_old = |oldest: &Entry| keep_for < now.duration_since(oldest.at);
        if self.bytes <= bytes_max && !self.entries.front().is_some_and(is_old) {
            return None;
        }
        let oldest = self.entries.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

impl Entries {
    /// Drops what is too much or too old.
    fn drop_oldest(&mut self, room: KeptRoom, age: (Instant, Duration)) {
        while let Some(entry) = self.imports.pop(room.import_bytes, age) {
            self.dropped.drop_one(entry.number);
        }
        while let Some(entry) = self.queue.pop(room.bytes, age) {
            if let Some(fact) = entry.of_the_node() {
                self.of_the_node.retain(|older| older.of_the_node() != Some(fact));
                self.of_the_node.push(entry);
            } else {
                self.dropped.drop_one(entry.number);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.of_the_node.iter().chain(&self.queue.entries).chain(&self.imports.entries)
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
    pub(crate) fn new(keep_for: Duration, room: KeptRoom) -> Self {
        Self { entries: Mutex::default(), keep_for, room }
    }

    /// Keeps an entry, and drops older ones. What says something about the node itself stays.
    pub(super) fn keep(&self, timeline: u32, now: Instant, entry: KeptEntry) -> Result<(), Superseded> {
        let (bytes, is_of_an_import) = (entry.bytes(), entry.is_of_an_import());
        let mut entries = self.lock();
        if timeline < entries.timeline {
            return Err(Superseded);
        }
        entries.dropped.on(timeline);
        entries.newest += 1;
        let entry = Entry { number: entries.newest, at: now, bytes, what: entry };
        if is_of_an_import {
            entries.imports.push(entry);
        } else {
            entries.queue.push(entry);
        }
        entries.drop_oldest(self.room, (now, self.keep_for));
        Ok(())
    }

    /// The server of this timeline has answered, and there is nothing to keep, as for the beat of a node that rests.
    /// Otherwise, what is old would be repeated after a failover that has not lost it. `beat` is what it has answered,
    /// if that is one.
    pub(super) fn age(&self, timeline: u32, now: Instant, beat: Option<KeptBeat>) {
        let mut entries = self.lock();
        if timeline == entries.timeline && !entries.are_repeated {
            if let Some(beat) = beat {
                entries.dropped.follow_up(timeline, beat);
            }
            entries.drop_oldest(self.room, (now, self.keep_for));
        }
    }

    /// The number of the newest entry.
    pub(super) fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// Whether the server of this timeline may lack something that was dropped.
    pub(super) fn has_dropped_before(&self, timeline: u32) -> bool {
        self.lock().dropped.is_before(timeline)
    }

    /// How many entries were dropped that this server may lack, which has this beat of the node, or none.
    pub(super) fn lose_dropped(&self, timeline: u32, beat: Option<u64>) -> u64 {
        self.lock().dropped.lose(timeline, beat)
    }

    /// From here on, what was acknowledged on an older timeline does not count.
    pub(super) fn begin(&self, timeline: u32) {
        let mut entries = self.lock();
        entries.timeline = entries.timeline.max(timeline);
        entries.are_repeated = true;
    }

    /// The entries after this number, in their order.
    pub(super) fn after(&self, number: u64) -> Vec<(u64, KeptEntry)> {
        let entries = self.lock();
        let later = entries.all().filter(|entry| number < entry.number);
        let mut later: Vec<_> = later.map(|entry| (entry.number, entry.what.clone())).collect();
        later.sort_by_key(|(number, _)| *number);
        later
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
        let Entries { queue, imports, .. } = &mut *entries;
        queue.entries.iter_mut().chain(&mut imports.entries).for_each(|entry| entry.at = now);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
