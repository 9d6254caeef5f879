//! An invalid batch is refused. A valid one is the same after it was written and read again.

use tokenrail_domain::Event;
use tokenrail_persistence::testing::{pack, tight_of, unpack};

use super::source::Source;

pub(crate) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let kind = source.below(4);
    let streams = source.rest();
    let events = match kind {
        0 => unpack(2, streams.to_vec()),
        1 => unpack(2, tight_of(streams)),
        _ => unpack(1, streams.to_vec()),
    };
    let Some(events) = events else { return };
    // A compressed batch may hold more events than it has bytes.
    assert!(kind == 0 || events.len() <= streams.len(), "an event has at least one byte");
    // A cost may be NaN, which is not equal to itself. So the test compares the printed events.
    for codec in [1, 2, 3] {
        let again = unpack(codec, pack(codec, &events)).expect("what was written can be read");
        assert_eq!(shown(&again), shown(&events));
    }
}

fn shown(events: &[Event]) -> String {
    format!("{events:?}")
}
