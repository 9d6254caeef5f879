//! The packing of batches, for the fuzzing in `tests/fuzzing`.

use tokenrail_domain::{Event, Sequence, TurnNumber};

use crate::format::packing::{self, Codec};

/// Unpacks a payload of this codec. `None` if it is malformed.
pub fn unpack(codec: i64, payload: Vec<u8>) -> Option<Vec<Event>> {
    let codec = Codec::from_number(codec)?;
    packing::unpack(codec, Sequence(1), TurnNumber::FIRST, payload).ok()?.collect::<Result<_, _>>().ok()
}

/// Packs events with this codec.
pub fn pack(codec: i64, events: &[Event]) -> Vec<u8> {
    match Codec::from_number(codec) {
        Some(Codec::Tight) => packing::pack_tight(events).unwrap_or_default(),
        Some(Codec::Quick) => packing::tighten(&packing::pack(events)).unwrap_or_default(),
        Some(Codec::Packed) | None => packing::pack(events),
    }
}

/// A payload of codec 2 with these streams, whatever they contain.
pub fn tight_of(streams: &[u8]) -> Vec<u8> {
    packing::tighten(streams).unwrap_or_default()
}
