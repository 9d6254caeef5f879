//! A batch that is no batch is refused; one that can be read is read the same when it is written again.

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
    // What is compressed may hold more events than bytes.
    assert!(kind == 0 || events.len() <= streams.len(), "an event has at least one byte");
    // A cost that is no number is not equal to itself: so what is compared is how they are shown.
    for codec in [1, 2] {
        let again = unpack(codec, pack(codec, &events)).expect("what was written can be read");
        assert_eq!(shown(&again), shown(&events));
    }
}

fn shown(events: &[Event]) -> String {
    format!("{events:?}")
}
