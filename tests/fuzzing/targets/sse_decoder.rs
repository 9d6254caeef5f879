//! The decoder agrees with the standard, whatever the chunks are.

use tokenrail_runner::{SseDecoder, SseEvent, SseOverflow};

use super::source::{Source, pieces};
use super::sse_model;

pub(crate) const WORDS: &[&str] = &[
    "data:",
    "data: ",
    "data",
    "event: message",
    "id: 7",
    "id",
    "id:\0",
    "retry: 10",
    "retry:+5",
    "retry: 99999999999999999999",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\r\r",
    "\r\n\r\n",
    ":",
    ": comment",
    "\u{feff}",
    "\u{2028}",
    " ",
    "\0",
];

/// Longer than any mutated input.
const ROOM: usize = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let (seed, bound) = (source.byte(), usize::from(source.byte()));
    let stream = source.rest();
    let (decoder, events, fine) = decoded(&[stream], ROOM);
    assert_eq!(fine, Ok(()));
    let expected = sse_model::read(stream);
    let same = |event: SseEvent| sse_model::Event { name: event.name, data: event.data, id: event.id };
    let found = sse_model::Stream {
        events: events.into_iter().map(same).collect(),
        last_id: decoder.last_id().map(str::to_owned),
        retry_ms: decoder.retry_ms(),
    };
    assert_eq!(found, expected);

    let (_, whole, whole_end) = decoded(&[stream], bound);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    for chunks in [pieces(stream, seed), bytes] {
        let (_, events, end) = decoded(&chunks, bound);
        assert_eq!((&events, end), (&whole, whole_end), "in {} chunks", chunks.len());
    }
}

fn decoded(chunks: &[&[u8]], bound: usize) -> (SseDecoder, Vec<SseEvent>, Result<(), SseOverflow>) {
    let mut decoder = SseDecoder::new(bound);
    let mut events = Vec::new();
    let mut end = Ok(());
    for chunk in chunks {
        let fed = decoder.feed(chunk, &mut events);
        assert!(end.is_ok() || fed == end, "an overflow stays");
        end = fed;
    }
    assert!(events.iter().all(|event| event.data.len() <= bound), "the bound holds");
    (decoder, events, end)
}
