//! `OpencodeParser`, line by line.

use crate::Format::Opencode;

fn part(kind: &str, part: &str) -> String {
    format!(r#"{{"type":"{kind}","sessionID":"s","part":{part}}}"#)
}

fn step(reason: &str) -> String {
    part("step_finish", &format!(r#"{{"reason":"{reason}","tokens":{{"input":2,"output":3}},"cost":0.5}}"#))
}

fn text(text: &str) -> String {
    part("text", &format!(r#"{{"text":"{text}"}}"#))
}

const USAGE: &str = r#"{"input":2,"output":3}"#;

#[test]
fn the_turn_ends_with_the_step_that_asks_for_no_tools() {
    let lines =
        [part("step_start", "{}"), step("tool-calls"), part("step_start", "{}"), text("Done"), step("stop")];
    Opencode.check(
        &lines,
        &[
            "session s",
            &format!("usage tool-calls {USAGE}"),
            r#"0 message complete + text "Done""#,
            &format!("usage stop {USAGE}"),
            concat!(
                r#"close "Done" turns 2 cost 1.0000 usage "#,
                r#"{"total":0,"input":4,"output":6,"reasoning":0,"cache":{"write":0,"read":0}}"#,
            ),
        ],
    );
}

#[test]
fn what_comes_after_the_end_is_another_turn() {
    let lines = [text("One"), step("stop"), part("step_start", "{}"), text("Two"), step("stop")];
    let said = Opencode.parse(lines.iter().map(String::as_bytes));
    let turns = said.iter().filter(|said| matches!(said, tokenrail_domain::Said::OwnTurn)).count();
    assert_eq!(turns, 1);
}

#[test]
fn a_step_that_has_not_finished_is_tried_again() {
    let start = || part("step_start", "{}");
    Opencode.check(
        &[start(), start(), text("a"), step("tool-calls"), start()],
        &[
            "session s",
            "notice api_retry",
            r#"0 message complete + text "a""#,
            &format!("usage tool-calls {USAGE}"),
        ],
    );
}

#[test]
fn failed_tools_are_known_by_status_by_exit_code_and_by_name() {
    let tool = |tool: &str, state: &str| {
        part("tool_use", &format!(r#"{{"tool":"{tool}","callID":"c","state":{state}}}"#))
    };
    for (line, expected) in [
        (tool("bash", r#"{"status":"completed","output":"hi","metadata":{"exit":0}}"#), r#"result c "hi""#),
        (
            tool("bash", r#"{"status":"completed","output":"no","metadata":{"exit":3}}"#),
            r#"result c failed "no""#,
        ),
        (tool("read", r#"{"status":"error","error":"gone"}"#), r#"result c failed "gone""#),
        (tool("invalid", r#"{"status":"completed","output":"what?"}"#), r#"result c failed "what?""#),
    ] {
        let said = Opencode.parse([line.as_bytes()]);
        let said = crate::rendering::Rendering { text_max: 100 }.each(&said);
        assert_eq!(said.last().map(String::as_str), Some(expected));
    }
}

#[test]
fn an_error_ends_the_turn() {
    for (error, expected) in [
        (
            r#"{"name":"APIError","data":{"message":"Sorry","statusCode":429}}"#,
            r#"rate_limit recoverable "Sorry""#,
        ),
        (
            r#"{"name":"APIError","data":{"message":"Sorry","isRetryable":true}}"#,
            r#"unknown recoverable "Sorry""#,
        ),
        (r#"{"name":"ProviderAuthError","data":{"message":"Sorry"}}"#, r#"authentication "Sorry""#),
        (r#"{"name":"ContextOverflowError","data":{"message":"Sorry"}}"#, r#"invalid_request "Sorry""#),
        (r#"{"name":"UnknownError","data":{}}"#, r#"unknown "UnknownError""#),
    ] {
        let line = format!(r#"{{"type":"error","error":{error}}}"#);
        Opencode.check(&[line], &[&format!("error {expected}"), &format!(r#"close "" error {expected}"#)]);
    }
    let aborted = r#"{"type":"error","error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}}"#;
    Opencode.check(&[aborted], &[r#"close "" interrupted error unknown "Aborted""#]);
}

#[test]
fn an_error_after_the_end_changes_nothing() {
    let late = r#"{"type":"error","error":{"name":"UnknownError","data":{"message":"no title"}}}"#;
    let said = Opencode.parse([step("stop").as_bytes(), late.as_bytes()]);
    let said = crate::rendering::Rendering { text_max: 100 }.each(&said);
    assert_eq!(said.last().map(String::as_str), Some(r#"error unknown "no title""#));
}

#[test]
fn the_first_session_is_the_one_to_resume() {
    let other = r#"{"type":"step_start","sessionID":"child"}"#;
    Opencode.check(&[other.replace("child", "s"), other.to_owned()], &["session s", "notice api_retry"]);
}
