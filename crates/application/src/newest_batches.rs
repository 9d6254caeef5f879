//! The newest events of a journal, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use tokenrail_domain::{Event, Sequence};

use crate::batch::Batch;

/// About this many bytes are held back for each follower, at most. With more, a follower needs several writes, and what
/// all followers send no longer fits into the processor's cache: so it costs more than the wake-ups that it saves.
const HELD_WIRE_BYTES: usize = 128 << 10;
/// How many announced batches are searched for one that a follower has requested, to learn how long events are for
/// clients. If there is none, what was learned before counts.
const MEASURED_BATCHES: usize = 4;

/// The newest events, the oldest first. Those that are held back come last.
#[derive(Debug, Default)]
pub(crate) struct NewestBatches {
    batches: VecDeque<Arc<Batch>>,
    /// The bytes of all batches. They are not added up again for each new batch, because a tail may hold thousands of
    /// them.
    bytes: usize,
    held: Option<HeldBatches>,
    measured: Option<RenderedEvents>,
}

/// How long events are for clients.
#[derive(Debug, Clone, Copy)]
struct RenderedEvents {
    events: usize,
    bytes: usize,
}

/// Committed events that are not announced yet.
///
/// In a flood, the followers may be the bottleneck while the agent has printed as much as may wait for its commit.
/// The events are saved then. To announce them at once would cost a wake-up and a write per follower for a few events,
/// and take the processor from the agent. So they are announced together, when the followers have taken what was
/// announced before.
#[derive(Debug, Clone, Copy, Default)]
struct HeldBatches {
    head: Sequence,
    events: usize,
    batches: usize,
    bytes: usize,
}

impl NewestBatches {
    /// Adds events that were committed at once. Returns how many bytes they take.
    pub(crate) fn push(&mut self, committed: &Arc<[Event]>) -> usize {
        let before = self.bytes;
        self.add(Batch::split(committed));
        self.bytes - before
    }

    fn add(&mut self, batches: impl IntoIterator<Item = Batch>) {
        for batch in batches {
            self.bytes += batch.bytes();
            self.batches.push_back(Arc::new(batch));
        }
    }

    /// Drops the oldest batch, and returns how many bytes it had.
    pub(crate) fn drop_oldest(&mut self) -> Option<usize> {
        let bytes = self.batches.pop_front()?.bytes();
        self.bytes -= bytes;
        Some(bytes)
    }

    /// Drops all batches, and returns how many bytes they had. What is held back is still to be announced.
    pub(crate) fn clear(&mut self) -> usize {
        self.batches.clear();
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The newest event in memory, announced or not.
    pub(crate) fn last(&self) -> Option<Sequence> {
        self.batches.back().map(|batch| batch.last())
    }

    pub(crate) fn batch_with(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        let newest = self.batches.back()?;
        // A reader that keeps up wants the newest batch.
        if newest.first() <= sequence {
            return (sequence <= newest.last()).then(|| Arc::clone(newest));
        }
        let after = self.batches.partition_point(|batch| batch.last() < sequence);
        self.batches.get(after).filter(|batch| batch.first() <= sequence).cloned()
    }

    /// Adds events and holds them back. Returns how many bytes they take. `None`, and nothing is added, if that would
    /// be too many for each follower, or more than half of `tail_bytes`.
    pub(crate) fn hold(&mut self, committed: &Arc<[Event]>, tail_bytes: usize) -> Option<usize> {
        let newest = committed.last()?.sequence;
        let held = self.held.unwrap_or_default();
        let mut announced = self.batches.iter().rev().skip(held.batches).take(MEASURED_BATCHES);
        let rendered = |batch: &Arc<Batch>| {
            Some(RenderedEvents { events: batch.events().len(), bytes: batch.rendered_bytes()? })
        };
        self.measured = announced.find_map(rendered).or(self.measured);
        let measured = self.measured?;
        let new: Vec<_> = Batch::split(committed).collect();
        let new_bytes: usize = new.iter().map(Batch::bytes).sum();
        let held = HeldBatches {
            head: newest,
            events: held.events + committed.len(),
            batches: held.batches + new.len(),
            bytes: held.bytes + new_bytes,
        };
        if HELD_WIRE_BYTES * measured.events < measured.bytes * held.events || tail_bytes / 2 < held.bytes {
            return None;
        }
        self.add(new);
        self.held = Some(held);
        Some(new_bytes)
    }

    /// Notes that everything is announced. Returns the newest event that was held back.
    pub(crate) fn release(&mut self) -> Option<Sequence> {
        Some(self.held.take()?.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::testing::notices;
    use crate::renderings::{Rendering, RenderingKey};

    struct Writer;

    const PLENTY: usize = 1 << 30;
    const EVENTS: u64 = 16;

    /// A commit of [`EVENTS`] events, the `number`-th of the journal.
    fn commit(number: u64) -> Arc<[Event]> {
        notices(number * EVENTS + 1..(number + 1) * EVENTS + 1)
    }

    fn head(number: u64) -> Sequence {
        Sequence((number + 1) * EVENTS)
    }

    /// One commit is announced. Its rendering has so many bytes for each event.
    fn announced(event_bytes: usize) -> NewestBatches {
        let mut newest = NewestBatches::default();
        newest.push(&commit(0));
        let bytes = vec![0; event_bytes * EVENTS as usize].into();
        let batch = newest.batch_with(Sequence(1)).unwrap();
        batch.rendering(RenderingKey::of::<Writer>([0, 0]), |_| Rendering { bytes, ends: Vec::new() });
        newest
    }

    /// How many commits are held back, of at most a hundred.
    fn held(newest: &mut NewestBatches, tail_bytes: usize) -> u64 {
        (1..=100).take_while(|number| newest.hold(&commit(*number), tail_bytes).is_some()).count() as u64
    }

    #[test]
    fn as_much_is_held_back_as_one_write_of_a_follower_takes() {
        let commits = 4;
        let mut newest = announced(HELD_WIRE_BYTES / EVENTS as usize / commits);
        assert_eq!(held(&mut newest, PLENTY), commits as u64);
        assert_eq!(newest.release(), Some(head(4)));
        assert_eq!(newest.release(), None);
    }

    #[test]
    fn nothing_is_held_back_if_one_commit_is_too_long_or_nobody_has_read() {
        assert_eq!(held(&mut announced(HELD_WIRE_BYTES), PLENTY), 0);
        let mut unread = NewestBatches::default();
        unread.push(&commit(0));
        assert_eq!(held(&mut unread, PLENTY), 0);
    }

    #[test]
    fn no_more_is_held_back_than_half_of_what_the_tail_may_hold() {
        let mut newest = announced(1);
        let of_one = newest.bytes();
        let commits = held(&mut newest, 10 * of_one);
        assert_eq!(commits, 5);
        assert_eq!(newest.bytes(), (1 + 5) * of_one);
    }

    #[test]
    fn what_is_held_back_can_be_read_and_is_announced_even_if_it_was_dropped_from_memory() {
        let mut newest = announced(1);
        newest.hold(&commit(1), PLENTY).unwrap();
        assert_eq!(newest.batch_with(head(1)).unwrap().last(), head(1));
        assert_eq!(newest.clear(), 2 * newest_bytes());
        assert!(newest.batch_with(head(1)).is_none());
        assert_eq!(newest.release(), Some(head(1)));
    }

    fn newest_bytes() -> usize {
        announced(1).bytes()
    }
}
