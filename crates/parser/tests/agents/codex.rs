//! `CodexParser`, line by line.

use crate::Format::Codex;

fn item(phase: &str, item: &str) -> String {
    format!(r#"{{"type":"item.{phase}","item":{item}}}"#)
}

fn message(id: &str, text: &str) -> String {
    item("completed", &format!(r#"{{"id":"{id}","type":"agent_message","text":"{text}"}}"#))
}

fn error(message: &str) -> String {
    format!(r#"{{"type":"error","message":"{message}"}}"#)
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"method":"{method}","params":{{"threadId":"t1",{params}}}}}"#)
}

fn delta(item: &str, delta: &str) -> String {
    notification("item/agentMessage/delta", &format!(r#""itemId":"{item}","delta":"{delta}""#))
}

#[test]
fn a_stream_that_is_tried_again_repeats_what_it_had_said() {
    let lines = [
        message("item_0", "One."),
        message("item_1", "Two."),
        error("Reconnecting... 1/2 (stream disconnected)"),
        message("item_2", "One."),
        error("Reconnecting... 2/2 (stream disconnected)"),
        message("item_3", "One."),
        message("item_4", "Two."),
        message("item_5", "Three."),
    ];
    Codex.check(
        &lines,
        &[
            r#"0 message complete + text "One.""#,
            r#"1 message complete + text "Two.""#,
            "notice api_retry",
            "notice api_retry",
            r#"2 message complete + text "Three.""#,
        ],
    );
}

#[test]
fn another_answer_may_say_the_same_again() {
    let reconnecting = error("Reconnecting... 1/2 (stream disconnected)");
    let run = |phase| item(phase, r#"{"id":"i","type":"command_execution","command":"ls","exit_code":0}"#);
    let lines = [
        message("item_0", "Again."),
        message("item_1", "Again."),
        run("started"),
        run("completed"),
        reconnecting.clone(),
        message("item_2", "Again."),
        reconnecting,
        message("item_3", "Otherwise."),
        message("item_4", "Again."),
    ];
    Codex.check(
        &lines,
        &[
            r#"0 message complete + text "Again.""#,
            r#"1 message complete + text "Again.""#,
            r#"2 message complete + use i command_execution {"command":"ls"}"#,
            r#"call i command_execution {"command":"ls"}"#,
            r#"result i """#,
            "notice api_retry",
            r#"3 message complete + text "Again.""#,
            "notice api_retry",
            r#"4 message complete + text "Otherwise.""#,
            r#"5 message complete + text "Again.""#,
        ],
    );
}

#[test]
fn tools_of_all_kinds_are_called_and_return() {
    let lines = [
        item("started", r#"{"id":"a","type":"command_execution","command":"false","status":"in_progress"}"#),
        item("completed", r#"{"id":"a","type":"command_execution","aggregated_output":"no","exit_code":1}"#),
        item(
            "started",
            r#"{"id":"b","type":"mcp_tool_call","server":"s","tool":"look","arguments":{"x":1}}"#,
        ),
        item(
            "completed",
            r#"{"id":"b","type":"mcp_tool_call","error":{"message":"gone"},"status":"failed"}"#,
        ),
        item("completed", r#"{"id":"c","type":"web_search","query":"rust","status":"completed"}"#),
        item("started", r#"{"id":"d","type":"hologram"}"#),
        item("completed", r#"{"id":"d","type":"hologram"}"#),
        item("updated", r#"{"id":"e","type":"todo_list","items":[]}"#),
        item("completed", r#"{"id":"f","type":"error","message":"unknown model"}"#),
    ];
    Codex.check(
        &lines,
        &[
            r#"0 message complete + use a command_execution {"command":"false"}"#,
            r#"call a command_execution {"command":"false"}"#,
            r#"result a failed "no""#,
            r#"1 message complete + use b mcp__s__look {"x":1}"#,
            r#"call b mcp__s__look {"x":1}"#,
            r#"result b failed "gone""#,
            r#"2 message complete + use c web_search {"query":"rust"}"#,
            r#"call c web_search {"query":"rust"}"#,
            r#"result c "completed""#,
            "notice hologram",
            "notice todo_list",
            "notice warning",
        ],
    );
    assert!(Codex.activity([lines[0].as_bytes()]).tool_running);
    assert!(!Codex.activity(lines[..2].iter().map(String::as_bytes)).tool_running);
}

#[test]
fn the_whole_item_is_the_truth_about_its_deltas() {
    let whole = |id: &str, text: &str| {
        let item = format!(r#""item":{{"type":"agentMessage","id":"{id}","text":"{text}"}}"#);
        notification("item/completed", &item)
    };
    let lines = [
        delta("m1", "Hel"),
        whole("m1", "Hello"),
        delta("m2", "wrong"),
        whole("m2", "right"),
        whole("m3", "at once"),
    ];
    Codex.check(
        &lines,
        &[
            r#"0.0 text "Hel""#,
            r#"0.0 text "lo""#,
            "0 end complete",
            r#"1.0 text "wrong""#,
            "1 abandoned",
            r#"2 message complete + text "right""#,
            r#"3 message complete + text "at once""#,
        ],
    );
}

#[test]
fn a_dropped_stream_of_deltas_is_said_anew() {
    let retry = r#""error":{"message":"Reconnecting... 1/5"},"willRetry":true"#;
    let lines = [delta("m1", "Hel"), notification("error", retry), delta("m2", "Hello")];
    Codex.check(&lines, &[r#"0.0 text "Hel""#, "0 abandoned", "notice api_retry", r#"1.0 text "Hello""#]);
}

#[test]
fn other_threads_talk_to_the_agent_and_not_to_the_user() {
    let lines = [
        r#"{"id":2,"result":{"thread":{"id":"t1"}}}"#.to_owned(),
        delta("m1", "mine"),
        r#"{"method":"item/agentMessage/delta","params":{"threadId":"t2","itemId":"x","delta":"not"}}"#
            .to_owned(),
        r#"{"method":"turn/completed","params":{"threadId":"t2","turn":{"status":"completed"}}}"#.to_owned(),
    ];
    Codex.check(&lines, &["session t1", r#"0.0 text "mine""#]);
}

#[test]
fn a_refused_request_ends_the_turn_that_it_cannot_begin() {
    let refused = r#"{"id":3,"error":{"code":-32600,"message":"no such thread"}}"#;
    let error = r#"unknown "no such thread""#;
    Codex.check(&[refused], &[&format!("error {error}"), &format!(r#"close "" error {error}"#)]);
    let begun = notification("turn/started", r#""turn":{}"#);
    Codex.check(&[begun.as_str(), refused], &["notice control_error"]);
}

#[test]
fn a_question_for_the_user_is_told_by_who_speaks_with_the_agent() {
    let asked = r#"{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"t1"}}"#;
    let told = r#"{"tokenrail":"permission_request","requestId":"1-1","toolName":"commandExecution","input":{},"options":[{"optionId":"accept","name":"Allow","kind":"allow_once"}]}"#;
    let settled = r#"{"tokenrail":"permission_resolved","requestId":"1-1","optionId":"accept","by":"user"}"#;
    let mut parser = tokenrail_parser::CodexParser::app_server();
    let said = crate::pump::read(&mut parser, [asked, told, settled].map(str::as_bytes));
    assert_eq!(
        crate::Rendering { text_max: 1000 }.each(&said),
        [
            "notice permission_request",
            "asks 1-1: accept",
            "notice permission_resolved",
            "settled 1-1: accept",
        ],
    );
}

#[track_caller]
fn check_error(error: &str, expected: &str) {
    let line = notification("error", &format!(r#""error":{error},"willRetry":false"#));
    Codex.check(&[line], &[&format!("error {expected}")]);
}

#[test]
fn errors_are_classed_by_name_then_by_status_then_by_text() {
    for (info, class) in [
        (r#""usageLimitExceeded""#, "rate_limit recoverable"),
        (r#""contextWindowExceeded""#, "invalid_request"),
        (r#""unauthorized""#, "authentication"),
        (r#"{"responseStreamDisconnected":{"httpStatusCode":null}}"#, "network recoverable"),
        (r#"{"httpConnectionFailed":{"httpStatusCode":401}}"#, "authentication"),
        (r#"{"responseTooManyFailedAttempts":{"httpStatusCode":529}}"#, "overloaded recoverable"),
        (r#""sandboxError""#, "process"),
        (r#""other""#, "unknown"),
        ("17", "unknown"),
    ] {
        check_error(
            &format!(r#"{{"message":"Sorry","codexErrorInfo":{info}}}"#),
            &format!(r#"{class} "Sorry""#),
        );
    }
    for (text, class) in [
        ("unexpected status 429 Too Many Requests: slow down, url: http://x", "rate_limit recoverable"),
        ("unexpected status 503 Service Unavailable", "overloaded recoverable"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "timeout recoverable"),
        ("stream disconnected before completion", "network recoverable"),
        ("Your input exceeds the context window of this model", "invalid_request"),
        ("You've hit your usage limit.", "rate_limit recoverable"),
    ] {
        check_error(&format!(r#"{{"message":"{text}"}}"#), &format!("{class} {text:?}"));
    }
    // If the named field has no status, it is taken from the text.
    let text = "exceeded retry limit, last status: 429 Too Many Requests";
    let info = r#"{"responseTooManyFailedAttempts":{"httpStatusCode":null}}"#;
    let error = format!(r#"{{"message":"{text}","codexErrorInfo":{info}}}"#);
    check_error(&error, &format!("rate_limit recoverable {text:?}"));
}
