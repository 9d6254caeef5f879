//! Errors of the agent and its API.

use super::{assistant, check, event, start, stop, text, whole};

/// The error class of an assistant line.
#[track_caller]
fn check_class(line: &str, expected: &str) {
    let expected = format!("error {expected}");
    check(&[line], &[&expected]);
}

fn synthetic(text: &str, more: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    format!(
        r#"{{"type":"assistant","message":{{"id":"x","model":"<synthetic>","content":{content}}}{more}}}"#
    )
}

#[test]
fn the_name_of_an_error_decides() {
    for (name, class) in [
        ("rate_limit", "rate_limit recoverable"),
        ("authentication_failed", "authentication"),
        ("billing_error", "invalid_request"),
        ("invalid_request", "invalid_request"),
        ("model_not_found", "invalid_request"),
        ("max_output_tokens", "invalid_request"),
        ("server_error", "unknown"),
        ("never_heard_of", "unknown"),
    ] {
        let line = synthetic("Sorry", &format!(r#","error":"{name}","is_api_error_message":true"#));
        check_class(&line, &format!("{class} \"Sorry\""));
    }
}

#[test]
fn else_the_type_the_status_or_the_text_does() {
    let server = |more: &str| format!(r#","error":"server_error"{more}"#);
    for (text, more, class) in [
        ("Sorry", r#","api_error_type":"overloaded_error","api_error_status":500"#, "overloaded recoverable"),
        ("Sorry", r#","api_error":"connection_failed""#, "network recoverable"),
        ("Sorry", r#","api_error_status":529"#, "overloaded recoverable"),
        ("Sorry", r#","api_error_status":429"#, "rate_limit recoverable"),
        ("Sorry", r#","api_error_status":401"#, "authentication"),
        ("Sorry", r#","api_error_status":504"#, "timeout recoverable"),
        ("Sorry", r#","api_error_status":413"#, "invalid_request"),
        ("API Error: 429 {}", "", "rate_limit recoverable"),
        ("API Error: 403 {}", "", "authentication"),
        ("API Error: Connection error.", "", "network recoverable"),
        ("Request timed out", "", "timeout recoverable"),
        ("Repeated 529 Overloaded errors", "", "overloaded recoverable"),
        ("Prompt is too long", "", "invalid_request"),
        ("API Error: 999", "", "unknown"),
        ("API Error: é", "", "unknown"),
    ] {
        check_class(&synthetic(text, &server(more)), &format!("{class} {text:?}"));
    }
}

#[test]
fn version_1_calls_no_error_by_name() {
    check_class(&synthetic("API Error: 400 {}", ""), "invalid_request \"API Error: 400 {}\"");
    check_class(&synthetic("Invalid API key", ""), "authentication \"Invalid API key\"");
    check(
        &[synthetic("No response requested.", "")],
        &[r#"0 message complete + text "No response requested.""#],
    );
    check(&[whole("m", "API Error is a term")], &[r#"0 message complete + text "API Error is a term""#]);
}

#[test]
fn an_error_ends_a_message_that_lost_its_stream_only() {
    let error = synthetic("API Error: 500", "");
    check(
        &[start("m"), text(0, "Hel"), error.clone()],
        &[r#"0.0 text "Hel""#, "0 abandoned", "error overloaded recoverable \"API Error: 500\""],
    );
    check(
        &[start("m"), text(0, "No."), whole("m", "No."), error, stop()],
        &[r#"0.0 text "No.""#, "error overloaded recoverable \"API Error: 500\"", "0 end complete"],
    );
}

#[test]
fn an_error_of_the_stream_is_told() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for line in [error.to_owned(), event(error)] {
        check(&[line], &[r#"error overloaded recoverable "Overloaded""#]);
    }
    check(&[r#"{"type":"error"}"#], &[r#"error unknown "the model's API reported an error""#]);
}

#[test]
fn an_error_of_a_sub_agent_is_told() {
    let line = assistant(
        "x",
        r#"{"type":"text","text":"Sorry"}"#,
        r#","error":"rate_limit","parent_tool_use_id":"c""#,
    );
    check(&[line], &[r#"error rate_limit recoverable "Sorry""#]);
}
