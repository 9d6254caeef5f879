use proptest::prelude::*;
use tokenrail_domain::{EventBody, MessageOrdinal, Part, ToolResult, TurnOutcome};
use tokenrail_ports::testing::samples::{Scribe, every_body, launch, result};

use super::*;

fn both_ways(events: &[Event]) {
    let first = events.first().map_or(Sequence(1), |event| event.sequence);
    let turn = events.first().map_or(TurnNumber(1), |event| event.turn);
    let quick = (Codec::Quick, compressed(&pack(events), QUICK_ZSTD_LEVEL).unwrap());
    let tight = (Codec::Tight, pack_tight(events).unwrap());
    for (codec, payload) in [(Codec::Packed, pack(events)), tight, quick, pack_quick(events).unwrap()] {
        let back: Result<Vec<Event>, MalformedBatch> = unpack(codec, first, turn, payload).unwrap().collect();
        assert_eq!(back.as_deref(), Ok(events), "{codec:?}");
    }
}

#[test]
fn every_kind_of_event_survives() {
    let (agent, turn) = launch(1);
    let mut scribe = Scribe::new(&agent);
    both_ways(&scribe.start(&turn).events);
    both_ways(&scribe.say(every_body()).events);
    both_ways(&scribe.end_with(result(TurnOutcome::Cancelled)).events);
    both_ways(&[]);
}

/// Databases of earlier versions have such events.
#[test]
fn a_user_message_without_images_is_packed_as_it_always_was() {
    let body = EventBody::UserMessage { content: "hi".to_owned(), images: Vec::new() };
    let event = Event { sequence: Sequence(1), at: Timestamp(2), turn: TurnNumber(1), body, raw: None };
    assert_eq!(pack(&[event]), b"\x01\x01\x01\x01\x01\x00\x02\x00\x00\x01\x00\x04\x00\x02hi");
}

/// Databases of earlier versions have such events.
#[test]
fn a_tool_result_without_a_patch_is_packed_as_it_always_was() {
    let content = tokenrail_ports::testing::samples::json("1");
    let result = ToolResult { call: "c".into(), content, is_error: true, parent_call: None, patch: None };
    let body = EventBody::ToolResult(Box::new(result));
    let event = Event { sequence: Sequence(1), at: Timestamp(2), turn: TurnNumber(1), body, raw: None };
    assert_eq!(pack(&[event]), b"\x01\x01\x01\x01\x02\x02\x02\x00\x00\x01\x06\x04\x00\x01\x01\x01\x00c1");
}

fn body() -> impl Strategy<Value = EventBody> {
    let delta = (0_u32..3, 0_u32..3, ".{0,12}", 0..3).prop_map(|(message, part, text, kind)| {
        let (message, part) = (MessageOrdinal(message), Part(part));
        match kind {
            0 => EventBody::TextDelta { message, part, text },
            1 => EventBody::ReasoningDelta { message, part, text },
            _ => EventBody::ToolInputDelta {
                message,
                part,
                call: text.clone(),
                tool: text.chars().next().map(String::from),
                fragment: text,
            },
        }
    });
    prop_oneof![4 => delta, 1 => prop::sample::select(every_body())]
}

fn event() -> impl Strategy<Value = (EventBody, i64, Option<Vec<u8>>, u8)> {
    let at = prop_oneof![3 => 0..1_795_299_000_000_i64, 1 => any::<i64>()];
    (body(), at, prop::option::of(prop::collection::vec(any::<u8>(), 0..80)), any::<u8>())
}

proptest! {
    #[test]
    fn any_events_survive(written in prop::collection::vec(event(), 1..30), first in 1_u64..1 << 40) {
        let events: Vec<Event> = written
            .into_iter()
            .enumerate()
            .map(|(index, (body, at, raw, echo))| {
                // Sometimes the raw line contains the text of the delta.
                let raw = match &body {
                    EventBody::TextDelta { text, .. } if echo < 128 => Some(format!("{{\"t\":\"{text}\"}}").into_bytes()),
                    _ => raw,
                };
                Event {
                    sequence: Sequence(first + index as u64),
                    at: Timestamp(at),
                    turn: TurnNumber(7),
                    body,
                    raw: raw.map(Bytes::from),
                }
            })
            .collect();
        both_ways(&events);
    }

    #[test]
    fn nonsense_is_refused_without_harm(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        for codec in [Codec::Packed, Codec::Tight] {
            if let Ok(events) = unpack(codec, Sequence(1), TurnNumber(1), payload.clone()) {
                prop_assert!(events.take(1000).count() <= 1000);
            }
        }
    }

    #[test]
    fn a_payload_that_is_cut_or_changed_is_no_panic(at in 0_usize..600, flip in 1_u8..=255) {
        let (agent, _) = launch(1);
        let events = Scribe::new(&agent).say(every_body()).events;
        for (codec, mut payload) in [(Codec::Packed, pack(&events)), (Codec::Tight, pack_tight(&events).unwrap())] {
            let at = at % payload.len();
            let cut = payload[..at].to_vec();
            let cut: Result<Vec<Event>, MalformedBatch> =
                unpack(codec, Sequence(1), TurnNumber(1), cut).and_then(Iterator::collect);
            prop_assert_eq!(cut, Err(MalformedBatch));
            payload[at] ^= flip;
            if let Ok(events) = unpack(codec, Sequence(1), TurnNumber(1), payload) {
                events.for_each(drop);
            }
        }
    }
}

#[test]
fn a_length_that_the_compressed_streams_do_not_have_is_refused() {
    let streams = pack(&[]);
    let compressed = zstd::bulk::compress(&streams, ZSTD_LEVEL).unwrap();
    for length in [streams.len() as u64 - 1, streams.len() as u64 + 1, UNPACKED_BYTES_MAX as u64] {
        let mut payload = Vec::new();
        put_varint(&mut payload, length);
        payload.extend_from_slice(&compressed);
        assert!(unpack(Codec::Tight, Sequence(1), TurnNumber(1), payload).is_err(), "{length}");
    }
}

#[test]
fn a_codec_is_known_by_its_number() {
    assert_eq!(Codec::from_number(1), Some(Codec::Packed));
    assert_eq!(Codec::from_number(2), Some(Codec::Tight));
    assert_eq!(Codec::from_number(3), Some(Codec::Quick));
    assert_eq!(Codec::from_number(4), None);
}

#[test]
fn raw_lines_of_a_packed_batch_are_slices_of_it() {
    let (agent, _) = launch(1);
    let events = Scribe::new(&agent).say(every_body()).events;
    let payload = pack(&events);
    let range = payload.as_ptr_range();
    for event in unpack(Codec::Packed, Sequence(1), TurnNumber(1), payload).unwrap() {
        if let Some(raw) = event.unwrap().raw {
            assert!(range.contains(&raw.as_ptr()), "no copy");
        }
    }
}
