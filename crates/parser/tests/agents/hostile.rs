//! Input that no agent should print.

use proptest::prelude::*;
use tokenrail_domain::{ErrorClass, EventBody, Said};
use tokenrail_ports::ExitStatus;

use crate::Format;
use crate::fixtures::{FormatRecording, recordings};
use crate::pump::{self, Seen, pump};
use crate::recorded::damaged;

/// Lines that are almost valid, in any order.
const WORDS: [&str; 58] = [
    r#"{"tokenrail":"sent","id":1,"method":"session/load"}"#,
    r#"{"tokenrail":"sent","id":2,"method":"session/prompt"}"#,
    r#"{"id":2,"result":{"stopReason":"end_turn"}}"#,
    r#"{"id":2,"result":{"stopReason":"cancelled"}}"#,
    r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83d"}}}}"#,
    r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"\ude00"}}}}"#,
    r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"pending"}}}"#,
    r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"c","rawInput":7,"status":"completed"}}}"#,
    r#"{"id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"d"}}}"#,
    r#"{"tokenrail":"permission_request","requestId":"1-1","options":[{"optionId":"y"}]}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.started","item":{"id":"i","type":"command_execution","command":"a"}}"#,
    r#"{"type":"item.completed","item":{"id":"i","type":"command_execution"}}"#,
    r#"{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"a"}}"#,
    r#"{"type":"item.completed","item":{"id":"m","type":"reasoning","text":"b"}}"#,
    r#"{"type":"turn.completed","usage":{}}"#,
    r#"{"type":"turn.failed","error":{"message":"c"}}"#,
    r#"{"type":"error","message":"Reconnecting... 1/2"}"#,
    r#"{"method":"turn/started","params":{}}"#,
    r#"{"method":"item/agentMessage/delta","params":{"itemId":"m","delta":"a\ud83d"}}"#,
    r#"{"method":"item/agentMessage/delta","params":{"itemId":"n","delta":"\ude00"}}"#,
    r#"{"method":"item/reasoning/textDelta","params":{"itemId":"m","delta":"d","contentIndex":4294967295}}"#,
    r#"{"method":"item/completed","params":{"item":{"id":"m","type":"agentMessage","text":"a"}}}"#,
    r#"{"method":"item/completed","params":{"item":{"id":"n","type":"reasoning","summary":["x"],"content":["y"]}}}"#,
    r#"{"method":"error","params":{"willRetry":true}}"#,
    r#"{"method":"turn/completed","params":{"turn":{"status":"interrupted"}}}"#,
    r#"{"id":1,"error":{}}"#,
    r#"{"type":"message","role":"assistant","content":"a\ud83d","delta":true,"text":"t"}"#,
    r#"{"type":"message","role":"assistant","content":"b"}"#,
    r#"{"type":"tool_use","tool_id":"c","tool_name":"T","part":{"callID":"c","tool":"T"}}"#,
    r#"{"type":"tool_result","tool_id":"c","id":"c"}"#,
    r#"{"type":"result","status":"success"}"#,
    r#"{"type":"result","status":"error","error":true}"#,
    r#"{"type":"step_start","sessionID":"s"}"#,
    r#"{"type":"step_finish","part":{"reason":"stop","cost":1e308,"tokens":{"input":18446744073709551615}}}"#,
    r#"{"type":"error","error":{"name":"x"},"severity":"error","message":"y"}"#,
    r#"{"type":"text","part":{"text":"a"},"text":"b"}"#,
    r#"{"type":"delta","text":"\ude00"}"#,
    r#"{"type":"reasoning","text":"e","part":{"text":"f"}}"#,
    r#"{"type":"tool_call","id":"c"}"#,
    r#"{"type":"message_start","message":{"id":"m","model":"n","usage":{"a":1}}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"t"}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"odd"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"choices":[{"delta":{"content":"a","tool_calls":[{"id":"c","function":{"arguments":{"b":1}}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"name":"t","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"finish_reason":"stop"}],"usage":{"b":2}}"#,
    "[DONE]",
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#,
    r#"{"type":"response.output_text.done","output_index":0,"text":"b"}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"c"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c"}}"#,
    r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"c"},{"refusal":"d"}]}}"#,
    r#"{"type":"response.completed","response":{"output":[{"type":"reasoning","summary":[{"text":"e"}]}]}}"#,
    r#"{"tokenrail":"end"}"#,
];

fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ALL[..])
}

fn recording() -> impl Strategy<Value = &'static FormatRecording> {
    // Long recordings would only make the test slow.
    let short: Vec<_> = recordings().iter().filter(|recording| recording.bytes.len() < 40_000).collect();
    prop::sample::select(short)
}

proptest! {
    #[test]
    fn any_bytes_say_something_or_nothing(
        format in format(),
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8),
    ) {
        pump(&format.parse(lines.iter().map(Vec::as_slice)));
    }

    #[test]
    fn a_recording_may_end_anywhere(recording in recording(), at in any::<prop::sample::Index>()) {
        let bytes = &recording.bytes[..at.index(recording.bytes.len())];
        pump(&recording.format.parse(bytes.split(|&byte| byte == b'\n')));
    }

    #[test]
    fn a_recording_may_be_damaged(
        recording in recording(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        let bytes = damaged(&recording.bytes, damage);
        pump(&recording.format.parse(bytes.split(|&byte| byte == b'\n')));
    }

    #[test]
    fn lines_may_be_lost_doubled_swapped_and_of_another_format(
        format in format(),
        recording in recording(),
        other in recording(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..120),
    ) {
        let lines: Vec<_> = recording.lines().chain(other.lines()).collect();
        pump(&format.parse(order.iter().map(|at| lines[at.index(lines.len())])));
    }

    #[test]
    fn every_order_of_lines_keeps_messages_apart(
        format in format(),
        order in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40),
    ) {
        let said = format.parse(order.iter().map(|line| line.as_bytes()));
        pump(&said);
        prop_assert_eq!(said, format.parse(order.iter().map(|line| line.as_bytes())));
    }

    #[test]
    fn text_may_be_cut_between_any_two_utf16_units(
        text in "[a-z\"\\\\\u{0}\u{2028}é😀👍🏽]{1,40}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(units.len())).collect();
        cuts.extend([0, units.len()]);
        cuts.sort_unstable();
        for (format, before, after) in DELTAS {
            let lines: Vec<String> = cuts
                .windows(2)
                .map(|cut| {
                    let escaped = units[cut[0]..cut[1]].iter().map(|unit| format!("\\u{unit:04x}"));
                    format!("{before}\"{}\"{after}", escaped.collect::<String>())
                })
                .collect();
            let Seen { open, .. } = pump(&format.parse(lines.iter().map(String::as_bytes)));
            prop_assert_eq!(open[0].text(), text.as_str(), "{:?}", format);
        }
    }
}

/// The text before and after a delta.
const DELTAS: [(Format, &str, &str); 8] = [
    (
        Format::Claude,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"#,
        "}}}",
    ),
    (
        Format::Acp,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#,
        "}}}}",
    ),
    (
        Format::Anthropic,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"#,
        "}}",
    ),
    (Format::OpenAiChat, r#"{"choices":[{"index":0,"delta":{"content":"#, "}}]}"),
    (
        Format::OpenAiResponses,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"#,
        "}",
    ),
    (Format::Codex, r#"{"method":"item/agentMessage/delta","params":{"itemId":"m","delta":"#, "}}"),
    (Format::Gemini, r#"{"type":"message","role":"assistant","content":"#, r#","delta":true}"#),
    (Format::Jsonl, r#"{"text":"#, r#","type":"delta"}"#),
];

/// The text before and after a complete message, and its end.
const MESSAGES: [(Format, &str, &str); 5] = [
    (Format::Claude, r#"{"type":"assistant","message":{"content":[{"type":"text","text":"#, "}]}}"),
    (Format::Codex, r#"{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"#, "}}"),
    (Format::Gemini, r#"{"type":"message","role":"assistant","content":"#, "}"),
    (Format::Opencode, r#"{"type":"text","part":{"text":"#, "}}"),
    (Format::Jsonl, r#"{"type":"message","text":"#, "}"),
];

#[test]
fn long_lines_with_line_separators_are_read() {
    let long = "x\\n\u{2028}".repeat(1_000_000);
    for (format, before, after) in MESSAGES {
        let line = format!("{before}\"{long}\"{after}");
        let seen = pump(&format.parse([line.as_bytes()]));
        assert_eq!(seen.messages[0].text().len(), 5_000_000, "{format:?}");
    }
    let line = "x\u{2028}".repeat(1_500_000);
    assert_eq!(pump(&Format::Text.parse([line.as_bytes()])).open[0].text(), line);
}

#[test]
fn lone_surrogates_in_whole_messages_cost_nothing_else() {
    for (format, before, after) in MESSAGES {
        let line = format!(r#"{before}"a\ud83d\u0000b\ud83d\ude00"{after}"#);
        let seen = pump(&format.parse([line.as_bytes()]));
        assert_eq!(seen.messages[0].text(), "a\u{fffd}\0b😀", "{format:?}");
    }
}

#[test]
fn every_line_of_every_recording_may_be_cut() {
    for recording in recordings().iter().filter(|recording| recording.bytes.len() < 20_000) {
        for line in recording.lines().filter(|line| line.starts_with(b"{")) {
            for cut in (1..line.len()).step_by(61) {
                for said in recording.format.parse([&line[..cut]]) {
                    let protocol = matches!(&said, Said::Event(EventBody::Error(error)) if error.class == ErrorClass::Protocol);
                    assert!(protocol, "{}: {said:?}", recording.name);
                }
            }
        }
    }
}

#[test]
fn what_is_no_object_is_one_error() {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Text) {
        for line in ["[1,2]", "3", "\"a\"", "null", "Loading…", "{", "{}x"] {
            let said = format.parse([line.as_bytes()]);
            let [Said::Event(EventBody::Error(error))] = &said[..] else {
                panic!("{format:?} {line}: {said:?}")
            };
            assert_eq!(error.code.as_deref(), Some("line_invalid"));
        }
        assert_eq!(format.parse([b"".as_slice(), b" \r"]), []);
    }
}

#[test]
fn how_a_process_ends_says_nothing_where_a_format_has_results() {
    let ends = [ExitStatus::Code(0), ExitStatus::Code(1), ExitStatus::Signal(9), ExitStatus::Lost];
    for recording in recordings() {
        for status in ends {
            let (mut parser, mut said) = (recording.format.parser(), Vec::new());
            pump::read(&mut *parser, recording.lines());
            parser.end(status, &mut said);
            assert_eq!(said, [], "{}: {status:?}", recording.name);
        }
    }
}

#[test]
fn deep_nesting_is_carried_as_it_is() {
    const DEPTH: usize = 1_000_000;
    let bomb = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    for format in Format::ALL {
        for line in [
            format!(r#"{{"type":"odd","bomb":{bomb}}}"#),
            format!(r#"{{"type":{bomb},"text":{bomb},"error":{bomb}}}"#),
            format!(r#"{{"type":"error","error":{bomb},"part":{bomb},"item":{bomb}}}"#),
            r#"{"a":"#.repeat(DEPTH),
        ] {
            let said = format.parse([line.as_bytes()]);
            assert!(said.len() <= 2, "{format:?}");
            pump(&said);
        }
    }
}
