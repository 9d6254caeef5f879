//! Consecutive events, as readers get them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokenrail_domain::{Event, Sequence};

use crate::renderings::{Rendering, RenderingKey, Renderings};

/// Events of one batch in memory. A reader that stalls holds the rendering of one, so it is not larger, however many
/// events were committed at once.
const BATCH_EVENTS: usize = 512;

/// Consecutive events that are committed, shared by all their readers.
#[derive(Debug)]
pub struct Batch {
    /// All that were committed with them.
    committed: Arc<[Event]>,
    /// Which of those are of this batch.
    range: Range<usize>,
    bytes: usize,
    renderings: Renderings,
}

impl Batch {
    /// Takes events that were committed at once, as batches of a size that can be held for slow readers.
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

    /// About what the batch takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batch as `key` has it, where some reader has asked for it already.
    pub fn rendered(&self, key: RenderingKey) -> Option<&Rendering> {
        self.renderings.get(key)
    }

    /// The batch as `key` has it: rendered by the first reader that asks, for all of them.
    pub fn rendering(&self, key: RenderingKey, render: impl FnOnce(&[Event]) -> Rendering) -> &Rendering {
        self.renderings.get_or_init(key, || render(self.events()))
    }
}

/// About what an event takes in memory, its renderings included.
fn weight(event: &Event) -> usize {
    // Two renderings of the text with its names around it, and the raw line.
    size_of::<Event>() + 600 + 3 * event.body.text_bytes() + event.raw.as_ref().map_or(0, Bytes::len)
}
