//! The blocks into which the batches of an ended turn are packed.

use tokenrail_domain::{Event, Sequence};
use tokenrail_ports::StoreError;

use super::packing;

/// The maximum size of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockLimits {
    /// Bytes of raw lines, about.
    pub(crate) bytes: usize,
    pub(crate) events: usize,
}

/// Consecutive events of one turn, packed with codec 2.
pub(crate) struct TightBlock {
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) payload: Vec<u8>,
}

/// Packs events of one turn, in the order of their numbers, which takes long. Events between them may be in blocks
/// already.
pub(crate) fn tight_blocks(events: &[Event], limits: BlockLimits) -> Result<Vec<TightBlock>, StoreError> {
    let mut blocks = Vec::new();
    for events in split(events, limits) {
        blocks.extend(TightBlock::of(events)?);
    }
    Ok(blocks)
}

impl TightBlock {
    fn of(events: &[Event]) -> Result<Option<Self>, StoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(None) };
        let payload =
            packing::pack_tight(events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Some(Self { first: first.sequence, last: last.sequence, payload }))
    }
}

/// Splits the events into blocks of consecutive events within the limits; a batch that is too large becomes several
/// blocks.
fn split(events: &[Event], limits: BlockLimits) -> Vec<&[Event]> {
    let (mut blocks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, event) in events.iter().enumerate() {
        let more = event.raw.as_ref().map_or(0, bytes::Bytes::len);
        let is_full = limits.bytes < bytes + more || limits.events <= at - start;
        if start < at && (is_full || events[at - 1].sequence.next() != event.sequence) {
            blocks.push(&events[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    blocks.push(&events[start..]);
    blocks
}
