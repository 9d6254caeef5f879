//! `GeminiParser`, line by line.

use crate::Format::Gemini;

fn delta(json: &str) -> String {
    format!(r#"{{"type":"message","role":"assistant","content":{json},"delta":true}}"#)
}

const DONE: &str = r#"{"status":"success","stats":{"tool_calls":0},"type":"result"}"#;

#[test]
fn a_message_ends_where_the_agent_does_something_else() {
    let call = r#"{"type":"tool_use","tool_name":"ls","tool_id":"c","parameters":{"a":1}}"#.to_owned();
    let failed =
        r#"{"type":"tool_result","tool_id":"c","status":"error","error":{"message":"no"}}"#.to_owned();
    let lines = [delta("\"Look\""), delta("\":\""), call, failed, delta("\"Done\""), DONE.to_owned()];
    Gemini.check(
        &lines,
        &[
            r#"0.0 text "Look""#,
            r#"0.0 text ":""#,
            "0 end complete",
            r#"1 message complete + use c ls {"a":1}"#,
            r#"call c ls {"a":1}"#,
            r#"result c failed "no""#,
            r#"2.0 text "Done""#,
            "2 end complete",
            r#"close "Done" usage {"tool_calls":0}"#,
        ],
    );
    assert!(Gemini.activity(lines[..3].iter().map(String::as_bytes)).tool_running);
    assert!(!Gemini.activity(lines[..4].iter().map(String::as_bytes)).tool_running);
}

#[test]
fn a_message_that_came_whole_is_one() {
    let whole = r#"{"type":"message","role":"assistant","content":"Hi"}"#;
    Gemini.check(
        &[whole, DONE],
        &[r#"0 message complete + text "Hi""#, r#"close "Hi" usage {"tool_calls":0}"#],
    );
}

#[test]
fn a_warning_ends_nothing_and_a_turn_may_succeed_after_an_error() {
    let event = |severity| format!(r#"{{"type":"error","severity":"{severity}","message":"Loop detected"}}"#);
    let lines = [delta("\"a\""), event("warning"), delta("\"b\""), event("error"), DONE.to_owned()];
    Gemini.check(
        &lines,
        &[
            r#"0.0 text "a""#,
            "notice warning",
            r#"0.0 text "b""#,
            r#"error unknown "Loop detected""#,
            "0 end complete",
            r#"close "ab" usage {"tool_calls":0}"#,
        ],
    );
}

#[test]
fn a_message_whose_stream_broke_off_is_left_open() {
    let failed = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"fetch failed"}}"#;
    Gemini.check(
        &[delta("\"a\\ud83d\""), failed.to_owned()],
        &[
            r#"0.0 text "a""#,
            "0.0 text \"\u{fffd}\"",
            r#"error network recoverable "fetch failed""#,
            r#"close "" error network recoverable "fetch failed""#,
        ],
    );
}

#[test]
fn errors_are_classed_by_what_their_text_quotes() {
    let quoted =
        |code: u16| format!(r#"[API Error: {{\"error\":{{\"code\":{code},\"message\":\"Sorry\"}}}}]"#);
    for (message, expected) in [
        (quoted(400), r#"invalid_request "Sorry""#),
        (quoted(401), r#"authentication "Sorry""#),
        (quoted(429), r#"rate_limit recoverable "Sorry""#),
        (quoted(503), r#"overloaded recoverable "Sorry""#),
        (
            "You exceeded your current quota".into(),
            r#"rate_limit recoverable "You exceeded your current quota""#,
        ),
        ("bad input {1}".into(), r#"unknown "bad input {1}""#),
        (r#"got {\"message\":\"hi\"}"#.into(), r#"unknown "got {\"message\":\"hi\"}""#),
    ] {
        let line = format!(r#"{{"type":"error","severity":"error","message":"{message}"}}"#);
        Gemini.check(&[line], &[&format!("error {expected}")]);
    }
}

#[test]
fn unknown_types_are_kept() {
    let line = r#"{"type":"thought","subject":"x"}"#;
    Gemini.check(&[line, r#"{"no":"type"}"#], &["notice thought", "notice untyped"]);
}
