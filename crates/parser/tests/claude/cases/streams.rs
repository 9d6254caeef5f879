//! Messages that come in pieces.

use super::{
    Rendering, assistant, block, check, delta, event, parse, result, start, stop, stop_abandoned, text, whole,
};

const TOOL: &str = r#"{"type":"tool_use","id":"c1","name":"Bash","input":{}}"#;
const CALL: &str = r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"a":1}}"#;

#[test]
fn a_text_is_said_once() {
    check(
        &[
            start("m"),
            block(0, r#"{"type":"text","text":""}"#),
            text(0, "Hel"),
            text(0, "lo"),
            whole("m", "Hello"),
            event(r#"{"type":"content_block_stop","index":0}"#),
            stop(),
        ],
        &[r#"0.0 text "Hel""#, r#"0.0 text "lo""#, "0 end complete"],
    );
}

#[test]
fn a_message_without_words_is_no_message() {
    check(
        &[start("m"), block(0, r#"{"type":"text","text":""}"#), text(0, ""), stop(), start("n"), stop()],
        &[],
    );
}

#[test]
fn deltas_need_no_frame() {
    check(&[text(0, "a"), stop(), text(0, "b")], &[r#"0.0 text "a""#, "0 end complete", r#"1.0 text "b""#]);
    check(
        &[r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"bare"}}"#],
        &[r#"0.2 text "bare""#],
    );
}

#[test]
fn what_the_deltas_lack_is_said_when_the_block_comes() {
    check(
        &[start("m"), text(0, "Hel"), whole("m", "Hello"), whole("m", "(more)"), stop()],
        &[r#"0.0 text "Hel""#, r#"0.0 text "lo""#, r#"0.1 text "(more)""#, "0 end complete"],
    );
}

#[test]
fn deltas_that_say_something_else_are_taken_back() {
    check(
        &[start("m"), text(0, "Hullo"), whole("m", "Hello"), stop()],
        &[r#"0.0 text "Hullo""#, "0 abandoned", r#"1 message complete + text "Hello""#],
    );
}

#[test]
fn a_block_that_comes_after_the_end_is_not_said_again() {
    check(
        &[start("m"), text(0, "Hello"), stop(), whole("m", "Hello"), whole("m", "New")],
        &[r#"0.0 text "Hello""#, "0 end complete", r#"1 message complete + text "New""#],
    );
}

#[test]
fn a_late_block_stands_for_one_part() {
    check(
        &[start("m"), text(0, "a"), stop(), whole("m", "a"), whole("m", "a")],
        &[r#"0.0 text "a""#, "0 end complete", r#"1 message complete + text "a""#],
    );
}

#[test]
fn a_tool_call_shows_its_name_first_and_its_input_whole() {
    let fragment = |json: &str| delta(0, "input_json_delta", "partial_json", json);
    check(
        &[
            start("m"),
            block(0, TOOL),
            fragment(r#""""#),
            fragment(r#""{\"a\"""#),
            fragment(r#""""#),
            fragment(r#"":1}""#),
            assistant("m", CALL, ""),
            stop(),
        ],
        &[
            r#"0.0 input c1 of Bash """#,
            r#"0.0 input c1 "{\"a\"""#,
            r#"0.0 input c1 ":1}""#,
            r#"call c1 Bash {"a":1}"#,
            "0 end complete",
        ],
    );
}

#[test]
fn what_is_not_said_in_deltas_comes_with_the_end() {
    let redacted = r#"{"type":"redacted_thinking","data":"x"}"#;
    check(
        &[start("m"), block(0, redacted), text(1, "a"), block(2, TOOL), assistant("m", CALL, ""), stop()],
        &[
            r#"0.1 text "a""#,
            r#"call c1 Bash {"a":1}"#,
            r#"0 end complete +0 other {"type":"redacted_thinking","data":"x"} +2 use c1 Bash {"a":1}"#,
        ],
    );
    check(
        &[start("m"), block(0, redacted), assistant("m", redacted, ""), stop()],
        &[r#"0 message complete + other {"type":"redacted_thinking","data":"x"}"#],
    );
}

#[test]
fn signatures_pings_and_unknown_deltas_say_nothing() {
    check(
        &[
            start("m"),
            delta(0, "signature_delta", "signature", "\"x\""),
            delta(0, "odd_delta", "text", "\"x\""),
            delta(0, "text_delta", "text", "5"),
            event(r#"{"type":"ping"}"#),
            event(r#"{"type":"odd"}"#),
            event("7"),
        ],
        &[],
    );
}

#[test]
fn surrogate_halves_are_joined() {
    check(
        &[
            text(0, r"a\ud83d"),
            text(1, "b"),
            text(0, r"\ude00"),
            text(0, r"\ud83d"),
            text(0, "c"),
            text(0, r"\ud83d"),
            stop(),
        ],
        &[
            r#"0.0 text "a""#,
            r#"0.1 text "b""#,
            r#"0.2 text "😀""#,
            "0.2 text \"\u{fffd}c\"",
            "0.2 text \"\u{fffd}\"",
            "0 abandoned",
            "1 message complete + text \"a😀\u{fffd}c\u{fffd}\" + text \"b\"",
        ],
    );
}

#[test]
fn a_dropped_stream_is_abandoned() {
    check(
        &[
            start("m"),
            text(0, "Hel"),
            stop_abandoned(0),
            start("n"),
            text(0, "Hello"),
            whole("n", "Hello"),
            stop(),
        ],
        &[r#"0.0 text "Hel""#, "0 abandoned", r#"1.0 text "Hello""#, "1 end complete"],
    );
    // Version 2.0 prints no notice of the retry.
    check(
        &[start("m"), text(0, "Hel"), start("n"), text(0, "Hello"), stop()],
        &[r#"0.0 text "Hel""#, "0 abandoned", r#"1.0 text "Hello""#, "1 end complete"],
    );
    check(
        &[start("m"), text(0, "Hel"), r#"{"type":"system","subtype":"api_retry"}"#.to_owned()],
        &[r#"0.0 text "Hel""#, "0 abandoned", "notice api_retry"],
    );
    check(
        &[start("m"), text(0, "Hel"), whole("other", "Hello")],
        &[r#"0.0 text "Hel""#, "0 abandoned", r#"1 message complete + text "Hello""#],
    );
}

#[test]
fn the_finished_blocks_of_a_dropped_stream_stay() {
    check(
        &[start("m"), text(0, "One."), whole("m", "One."), text(1, "Tw"), stop_abandoned(1)],
        &[r#"0.0 text "One.""#, r#"0.1 text "Tw""#, "0 abandoned", r#"1 message complete + text "One.""#],
    );
    check(
        &[start("m"), text(0, "One."), whole("m", "One."), stop_abandoned(1)],
        &[r#"0.0 text "One.""#, "0 end complete"],
    );
}

#[test]
fn an_interrupted_message_ends_cancelled() {
    let cut = assistant("m", r#"{"type":"text","text":"Hel"}"#, r#","aborted":true"#);
    check(
        &[start("m"), text(0, "Hel"), cut.clone(), stop_abandoned(1)],
        &[r#"0.0 text "Hel""#, "0 end cancelled"],
    );
    check(&[cut], &[r#"0 message cancelled + text "Hel""#]);
}

#[test]
fn a_message_without_an_end_is_cut_where_the_turn_was() {
    let note =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    let aborted =
        r#","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming""#;
    let (head, cut) = ([start("m"), text(0, "Hel"), whole("m", "Hel")], r#"0.0 text "Hel""#);
    let end = |lines: &[String]| {
        let lines = [&head[..], lines].concat();
        let said = parse(lines.iter().map(String::as_bytes));
        Rendering { text_max: 1000 }.each(&said)
    };
    for lines in
        [vec![note.to_owned(), stop()], vec![note.to_owned(), result(aborted)], vec![result(aborted)]]
    {
        let told = end(&lines);
        assert_eq!(told[0], cut);
        assert!(told.contains(&"0 end cancelled".to_owned()), "{lines:?}: {told:?}");
    }
    let failed = end(&[result(r#","subtype":"error_during_execution","is_error":true"#)]);
    assert_eq!(failed[1], "0 end failed");
    let limited = end(&[result(r#","subtype":"error_max_turns","is_error":true"#)]);
    assert_eq!(limited[1], "0 end complete", "the agent was stopped after the message");
    assert_eq!(end(&[result("")])[1], "0 end complete");
}

#[test]
fn usage_comes_with_the_message_delta() {
    let delta = r#""delta":{"stop_reason":"end_turn"}"#;
    check(
        &[event(&format!(r#"{{"type":"message_delta",{delta},"usage":{{"output_tokens":7}}}}"#))],
        &[r#"usage end_turn {"output_tokens":7}"#],
    );
    check(&[event(&format!(r#"{{"type":"message_delta",{delta}}}"#))], &["usage end_turn {}"]);
    check(&[event(r#"{"type":"message_delta"}"#)], &[]);
}

#[test]
fn the_stream_of_a_sub_agent_says_nothing() {
    let line = text(0, "a").replace("null", "\"c1\"");
    check(&[line], &[]);
}
