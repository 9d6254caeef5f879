//! Batches: consecutive events, as readers receive them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokenrail_domain::{Event, Sequence};

use crate::renderings::{Rendering, RenderingKey, Renderings};

/// The maximum number of events of one batch in memory, however many were committed at once. A stalled reader holds one
/// page: the rendering of one batch. So this bounds what it costs.
const BATCH_EVENTS: usize = 512;

/// Consecutive committed events, shared by all their readers.
#[derive(Debug)]
pub struct Batch {
    /// All events of the commit.
    committed: Arc<[Event]>,
    /// The part of `committed` that is this batch.
    range: Range<usize>,
    bytes: usize,
    renderings: Renderings,
}

impl Batch {
    /// Splits events that were committed at once into batches that are small enough to be held for slow readers.
    pub(crate) fn split(events: &Arc<[Event]>) -> impl Iterator<Item = Self> {
        let begins = (0..events.len()).step_by(BATCH_EVENTS);
        begins.map(|begin| Self::part(Arc::clone(events), begin..events.len().min(begin + BATCH_EVENTS)))
    }

    fn part(committed: Arc<[Event]>, range: Range<usize>) -> Self {
        let bytes = committed[range.clone()].iter().map(weight).sum();
        Self { committed, range, bytes, renderings: Renderings::default() }
    }

    pub fn events(&self) -> &[Event] {
        &self.committed[self.range.clone()]
    }

    pub fn first(&self) -> Sequence {
        self.events().first().map_or(Sequence::START, |event| event.sequence)
    }

    pub fn last(&self) -> Sequence {
        self.events().last().map_or(Sequence::START, |event| event.sequence)
    }

    /// About how many bytes the batch takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes the longest rendering has. `None` if no reader has requested one yet.
    pub(crate) fn rendered_bytes(&self) -> Option<usize> {
        self.renderings.longest_bytes()
    }

    /// The rendering for `key`, if a reader has requested it already.
    pub fn rendered(&self, key: RenderingKey) -> Option<&Rendering> {
        self.renderings.get(key)
    }

    /// The rendering for `key`. The first reader that requests it renders it for all readers.
    pub fn rendering(&self, key: RenderingKey, render: impl FnOnce(&[Event]) -> Rendering) -> &Rendering {
        self.renderings.get_or_init(key, || render(self.events()))
    }
}

/// About how many bytes an event takes in memory, including its renderings.
fn weight(event: &Event) -> usize {
    // The event, two renderings of its text with the field names around it, and the raw line.
    size_of::<Event>() + 600 + 3 * event.body.text_bytes() + event.raw.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
pub(crate) mod testing {
    use tokenrail_domain::{EventBody, JsonText, Notice, Timestamp, TurnNumber};

    use super::*;

    /// Events of equal size with these numbers, as they were committed at once.
    pub(crate) fn notices(numbers: Range<u64>) -> Arc<[Event]> {
        let event = |number| Event {
            sequence: Sequence(number),
            at: Timestamp(1),
            turn: TurnNumber::FIRST,
            body: EventBody::Notice(Box::new(Notice {
                subtype: "a".to_owned(),
                data: JsonText::new_unchecked("{}"),
            })),
            raw: None,
        };
        numbers.map(event).collect()
    }
}
