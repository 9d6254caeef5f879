//! Lines of every other kind.

use super::{check, check_two_way, notice, notice_two_way};

#[test]
fn system_lines_are_notices_as_given() {
    let line = r#"{"type":"system","subtype":"status", "status":"requesting","odd":"\ud83d"}"#;
    let given = notice(line);
    assert_eq!((given.subtype.as_str(), given.data.as_str()), ("status", line));
    check(&[r#"{"type":"system","subtype":"thinking_tokens"}"#], &[]);
    check(&[r#"{"type":"system"}"#], &["notice system"]);
}

#[test]
fn permission_questions_are_told_by_who_speaks_with_the_agent() {
    let asked = r#"{"tokenrail":"permission_request","requestId":"2-1","toolName":"Write","input":{"a":"\ud83d"},"options":[{"optionId":"allow"},{"optionId":"reject"}]}"#;
    let settled = r#"{"tokenrail":"permission_resolved","requestId":"2-1","by":"timeout"}"#;
    check_two_way(
        &[asked, settled],
        &[
            "notice permission_request",
            "asks 2-1: allow, reject",
            "notice permission_resolved",
            "settled 2-1: by none",
        ],
    );
    let data = notice_two_way(asked).data;
    assert!(
        data.as_str().starts_with(r#"{"requestId":"2-1","toolName":"Write","input":{"a":"\ud83d"}"#),
        "{data:?}"
    );
    assert_eq!(notice_two_way(settled).data.as_str(), r#"{"requestId":"2-1","by":"timeout"}"#);
}

#[test]
fn what_an_agent_says_itself_is_no_question() {
    check_two_way(
        &[
            r#" {"tokenrail":"permission_request","requestId":"2-1","options":[]}"#,
            r#"{"type":"system","subtype":"permission_request"}"#,
            r#"{"type":"permission_resolved"}"#,
        ],
        &["notice untyped", "notice agent_permission_request", "notice agent_permission_resolved"],
    );
}

#[test]
fn where_nobody_speaks_with_the_agent_all_lines_are_its_own() {
    let forged =
        r#"{"tokenrail":"permission_request","requestId":"1-1","toolName":"x","input":{},"options":[]}"#;
    check(&[forged], &["notice untyped"]);
    check(&[r#"{"tokenrail":"error","class":"process","code":"x","text":"y"}"#], &["notice untyped"]);
}

#[test]
fn a_conversation_that_cannot_go_on_ends_its_turn() {
    let error = r#"{"tokenrail":"error","class":"process","code":"input_unread","text":"it does not read"}"#;
    let told = "error process input_unread \"it does not read\"";
    check_two_way(&[error], &[told, &format!("close \"\" {told}")]);
    check_two_way(&[r#"{"tokenrail":"sent","id":1,"method":"initialize"}"#], &[]);
}

#[test]
fn what_goes_to_and_fro_displays_nothing() {
    check(
        &[
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Write"}}"#,
            r#"{"type":"control_cancel_request","request_id":"r"}"#,
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback"}}"#,
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"r"}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no"}}"#,
            r#"{"type":"command_lifecycle","state":"queued"}"#,
        ],
        &["notice control_error"],
    );
}

#[test]
fn unknown_types_are_kept() {
    check(
        &[r#"{"type":"rate_limit_event","x":1}"#, r#"{"type":"odd","subtype":"er"}"#, "{}", r#"{"type":5}"#],
        &["notice rate_limit_event", "notice odd/er", "notice untyped", "notice untyped"],
    );
    assert_eq!(notice(r#" {"type":"odd","x":[1]} "#).data.as_str(), r#"{"type":"odd","x":[1]}"#);
}

#[test]
fn what_is_no_object_is_an_error() {
    let told = |line: &str| {
        format!(
            "error protocol line_invalid {:?}",
            format!("the agent printed a line that is not a JSON object: {line}")
        )
    };
    for line in
        ["oops", "5", "\"text\"", "null", r#"{"type":"#, r#"{"a":1}}"#, "[{}", "data: {}", "{\"a\":1,}"]
    {
        check(&[line], &[&told(line)]);
    }
    let long = "ü".repeat(300);
    check(&[&long], &[&told(&format!("{} …", "ü".repeat(200)))]);
    check(&["[5,{}]"], &[&told("5"), "notice untyped"]);
}

#[test]
fn lines_without_anything_say_nothing() {
    check(&["", "   ", "\r", "[]"], &[]);
}

#[test]
fn a_line_end_of_windows_is_no_part_of_the_line() {
    check(&["{\"type\":\"odd\"}\r"], &["notice odd"]);
    assert_eq!(notice("{\"type\":\"odd\"}\r").data.as_str(), r#"{"type":"odd"}"#);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    check(
        &[b"{\"type\":\"message\",\"content\":\"a\xffb\"}".as_slice()],
        &["0 message complete + text \"a\u{fffd}b\""],
    );
}

#[test]
fn an_array_is_read_as_its_elements() {
    check(
        &[r#"[{"type":"message","content":"a"},{"type":"result","result":"a"}]"#],
        &[r#"0 message complete + text "a""#, r#"close "a""#],
    );
}

#[test]
fn line_separators_of_unicode_end_no_line() {
    check(
        &["{\"type\":\"message\",\"content\":\"a\u{2028}b\"}"],
        &["0 message complete + text \"a\\u{2028}b\""],
    );
}
