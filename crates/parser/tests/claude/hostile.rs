//! Input that no agent should print.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tokenrail_domain::{CompleteMessage, ErrorClass, EventBody, Said};

use crate::fixtures::{Recording, recordings};
use crate::parse;
use crate::pump::pump;
use crate::recorded::damaged;

/// Lines of the format, from which almost valid output is built.
const WORDS: [&str; 24] = [
    r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}"#,
    r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m2"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"T"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start","index":4294967295,"content_block":{"type":"odd"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"b"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"c"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_stop","index":0}}"#,
    r#"{"type":"stream_event","event":{"type":"message_stop"}}"#,
    r#"{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{"from_block_index":0}}"#,
    r#"{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{"from_block_index":1}}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"a"}]}}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"other"},{"type":"thinking","thinking":"b"}]}}"#,
    r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"c","name":"T","input":{}}]},"aborted":true}"#,
    r#"{"type":"assistant","message":{"id":"m3","content":"x"},"parent_tool_use_id":"c"}"#,
    r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"API Error"}]},"error":"unknown"}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c"}]}}"#,
    r#"{"type":"system","subtype":"init","session_id":"s"}"#,
    r#"{"type":"system","subtype":"api_retry"}"#,
    r#"{"type":"result","subtype":"success"}"#,
    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a😀"}]}}"#,
];

fn recording() -> impl Strategy<Value = &'static Recording> {
    // Long recordings would only make the test slow.
    let short: Vec<_> = recordings().iter().filter(|recording| recording.bytes.len() < 40_000).collect();
    prop::sample::select(short)
}

proptest! {
    #[test]
    fn any_bytes_say_something_or_nothing(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
        pump(&parse(lines.iter().map(Vec::as_slice)));
    }

    #[test]
    fn a_recording_may_end_anywhere(recording in recording(), at in any::<prop::sample::Index>()) {
        let bytes = &recording.bytes[..at.index(recording.bytes.len())];
        pump(&parse(bytes.split(|&byte| byte == b'\n')));
    }

    #[test]
    fn a_recording_may_be_damaged(
        recording in recording(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        let bytes = damaged(&recording.bytes, damage);
        pump(&parse(bytes.split(|&byte| byte == b'\n')));
    }

    #[test]
    fn lines_may_be_lost_doubled_and_swapped(
        recording in recording(),
        other in recording(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..120),
    ) {
        let lines: Vec<_> = recording.lines().chain(other.lines()).collect();
        pump(&parse(order.iter().map(|at| lines[at.index(lines.len())])));
    }

    #[test]
    fn every_order_of_lines_keeps_messages_apart(
        order in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40),
    ) {
        let said = parse(order.iter().map(|line| line.as_bytes()));
        pump(&said);
        prop_assert_eq!(said, parse(order.iter().map(|line| line.as_bytes())));
    }

    #[test]
    fn blocks_in_any_order_have_the_text_of_their_pieces(
        pieces in prop::collection::vec((0_u32..4, "[a-c]{0,2}"), 1..20),
        repeated in any::<bool>(),
    ) {
        let event = |event: String| format!(r#"{{"type":"stream_event","event":{event}}}"#);
        let mut lines = vec![event(r#"{"type":"message_start","message":{"id":"m"}}"#.to_owned())];
        let mut whole: BTreeMap<u32, String> = BTreeMap::new();
        for (index, text) in &pieces {
            // Every other block is reasoning.
            let delta = match index % 2 {
                0 => format!(r#"{{"type":"text_delta","text":"{text}"}}"#),
                _ => format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#),
            };
            lines.push(event(format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)));
            whole.entry(*index).or_default().push_str(text);
        }
        let blocks = whole.iter().map(|(index, text)| match index % 2 {
            0 => format!(r#"{{"type":"text","text":"{text}"}}"#),
            _ => format!(r#"{{"type":"thinking","thinking":"{text}"}}"#),
        });
        let blocks = blocks.collect::<Vec<_>>().join(",");
        if repeated {
            lines.push(format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{blocks}]}}}}"#));
        }
        lines.push(event(r#"{"type":"message_stop"}"#.to_owned()));
        // `pump` compares each streamed message with these blocks.
        let seen = pump(&parse(lines.iter().map(String::as_bytes)));
        let text: String = seen.messages.iter().map(CompleteMessage::text).collect();
        let texts = whole.iter().filter(|(index, _)| *index % 2 == 0);
        prop_assert_eq!(text, texts.map(|(_, text)| &**text).collect::<String>());
    }
}

#[test]
fn blocks_that_speak_out_of_order_are_said_again_in_theirs_and_stay_as_they_came_where_they_are_cut() {
    let delta = |index: u32, text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let end = r#"{"type":"stream_event","event":{"type":"message_stop"}}"#.to_owned();
    for (mut lines, as_they_came, in_order) in [
        (vec![delta(1, "a"), delta(0, "b")], "ab", "ba"),
        (vec![delta(0, "a"), delta(1, "b"), delta(0, "c")], "abc", "acb"),
    ] {
        let texts = |seen: &[CompleteMessage]| seen.iter().map(CompleteMessage::text).collect::<Vec<_>>();
        let cut = pump(&parse(lines.iter().map(String::as_bytes)));
        assert_eq!(texts(&cut.open), [as_they_came]);
        lines.push(end.clone());
        let whole = pump(&parse(lines.iter().map(String::as_bytes)));
        assert_eq!((texts(&whole.messages), whole.open), (vec![in_order.to_owned()], Vec::new()));
    }
}

#[test]
fn every_line_of_every_recording_may_be_cut() {
    for recording in recordings().iter().filter(|recording| recording.bytes.len() < 20_000) {
        for line in recording.lines() {
            for cut in (0..line.len()).step_by(61) {
                for said in parse([&line[..cut]]) {
                    let protocol = matches!(&said, Said::Event(EventBody::Error(error)) if error.class == ErrorClass::Protocol);
                    assert!(protocol, "{}: {said:?}", recording.name);
                }
            }
        }
    }
}

#[test]
fn deep_nesting_is_carried_as_it_is() {
    const DEPTH: usize = 1_000_000;
    let bomb = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    let lines = [
        format!(r#"{{"type":"odd","bomb":{bomb}}}"#),
        format!(r#"{{"type":"assistant","message":{{"content":{bomb}}}}}"#),
        format!(r#"{{"type":{bomb}}}"#),
        "[".repeat(DEPTH),
        r#"{"a":"#.repeat(DEPTH),
    ];
    let said = parse(lines.iter().map(String::as_bytes));
    let notices = said.iter().filter(|said| matches!(said, Said::Event(EventBody::Notice(_)))).count();
    let errors = said.iter().filter(|said| matches!(said, Said::Event(EventBody::Error(_)))).count();
    assert_eq!((notices, errors), (2, 2), "the odd ones are kept, the cut ones reported");
    pump(&parse([bomb.as_bytes()]));
}

#[test]
fn an_array_of_anything_but_objects_is_one_error() {
    let list = format!("[{}1]", "1,".repeat(100_000));
    assert_eq!(parse([list.as_bytes()]).len(), 1, "not one for each element");
}

#[test]
fn long_lines_are_read() {
    let long = "x\\n\u{2028}".repeat(1_000_000);
    let line =
        format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#);
    let seen = pump(&parse([line.as_bytes()]));
    assert_eq!(seen.messages[0].text().len(), 5_000_000);

    let block = r#"{"type":"text","text":"a"},"#.repeat(100_000);
    let lines = [
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}"#.to_owned(),
        format!(
            r#"{{"type":"assistant","message":{{"id":"m","content":[{}]}}}}"#,
            block.trim_end_matches(',')
        ),
        r#"{"type":"stream_event","event":{"type":"message_stop"}}"#.to_owned(),
    ];
    let seen = pump(&parse(lines.iter().map(String::as_bytes)));
    assert_eq!(seen.messages[0].text().len(), 100_000, "a block is found without a search through all");
}
