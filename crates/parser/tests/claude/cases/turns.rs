//! How turns begin and end, and what happens in them.

use tokenrail_ports::Activity;

use super::{activity, assistant, check, result, start, text, whole};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s"}"#;

fn error_line() -> String {
    assistant("x", r#"{"type":"text","text":"Too much"}"#, r#","error":"rate_limit""#)
}

#[test]
fn a_result_closes_the_turn() {
    let more = r#","is_error":false,"subtype":"success","result":"Hi","num_turns":2,"total_cost_usd":0.5,"usage":{"a":1},"origin":{"kind":"task-notification"}"#;
    check(&[result(more)], &[r#"close "Hi" turns 2 cost 0.5000 usage {"a":1} origin task-notification"#]);
}

#[test]
fn a_failure_is_told_once_and_stands_in_the_result() {
    check(
        &[error_line(), result(r#","is_error":true,"subtype":"success","result":"Too much""#)],
        &[
            r#"error rate_limit recoverable "Too much""#,
            r#"close "Too much" error rate_limit recoverable "Too much""#,
        ],
    );
    check(
        &[result(r#","is_error":true,"subtype":"success","result":"Sorry","api_error_status":529"#)],
        &[r#"error overloaded recoverable "Sorry""#, r#"close "Sorry" error overloaded recoverable "Sorry""#],
    );
    // Old versions do not mark this as an error.
    check(
        &[result(r#","is_error":false,"subtype":"error_max_turns","errors":[]"#)],
        &[
            r#"error invalid_request "the agent reached its own limit of turns or cost (max turns, max budget)""#,
            r#"close "" error invalid_request "the agent reached its own limit of turns or cost (max turns, max budget)""#,
        ],
    );
    check(
        &[result(r#","subtype":"error_during_execution","errors":["No conversation found","x"]"#)],
        &[
            r#"error invalid_request "No conversation found; x""#,
            r#"close "" error invalid_request "No conversation found; x""#,
        ],
    );
}

#[test]
fn an_interrupt_is_no_error_of_the_agent() {
    let close = r#"close "" interrupted error unknown "the agent was interrupted""#;
    let note =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    check(
        &[result(
            r#","is_error":true,"subtype":"error_during_execution","terminal_reason":"aborted_streaming""#,
        )],
        &[close],
    );
    check(
        &[note.to_owned(), result(r#","subtype":"error_during_execution","errors":[]"#)],
        &["notice interrupt_note", close],
    );
}

#[test]
fn a_message_without_an_end_stays_open() {
    check(
        &[start("m"), text(0, r"Hel\ud83d"), result("")],
        &[r#"0.0 text "Hel""#, "0.0 text \"\u{fffd}\"", r#"close """#],
    );
    check(
        &[start("m"), text(0, "Hello"), whole("m", "Hello"), result("")],
        &[r#"0.0 text "Hello""#, "0 end complete", r#"close """#],
    );
}

#[test]
fn after_a_result_a_new_turn_begins() {
    check(
        &[INIT.to_owned(), whole("a", "A"), result(""), INIT.to_owned(), whole("b", "B"), result("")],
        &[
            "session s",
            "notice init",
            r#"0 message complete + text "A""#,
            r#"close """#,
            "next turn",
            "notice init",
            r#"0 message complete + text "B""#,
            r#"close """#,
        ],
    );
    check(
        &[result(""), start("m"), text(0, "B"), result(""), whole("c", "C"), result(""), result("")],
        &[
            r#"close """#,
            "next turn",
            r#"0.0 text "B""#,
            r#"close """#,
            "next turn",
            r#"0 message complete + text "C""#,
            r#"close """#,
            "next turn",
            r#"close """#,
        ],
    );
}

#[test]
fn what_comes_between_two_turns_belongs_to_the_first() {
    let late = r#"{"type":"system","subtype":"task_notification","task_id":"t"}"#;
    check(
        &[result(""), late.to_owned(), INIT.to_owned()],
        &[r#"close """#, "notice task_notification", "session s", "next turn", "notice init"],
    );
}

#[test]
fn the_session_is_told_when_it_changes() {
    check(
        &[
            r#"{"type":"keep_alive","session_id":"a"}"#,
            r#"{"type":"keep_alive","session_id":"a"}"#,
            r#"{"type":"keep_alive","session_id":""}"#,
            r#"{"type":"keep_alive","session_id":null}"#,
            r#"{"type":"keep_alive","session_id":"b"}"#,
        ],
        &["session a", "session b"],
    );
}

#[test]
fn a_tool_runs_until_its_result() {
    let block = r#"{"type":"tool_use","id":"c","name":"Bash","input":{}}"#;
    let call = assistant("m", block, "");
    let sub_call = assistant("m", block, r#","parent_tool_use_id":"p""#);
    let end =
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c"}]}}"#.to_owned();
    let running =
        |lines: &[&String]| activity(&lines.iter().copied().cloned().collect::<Vec<_>>()).tool_running;
    assert!(running(&[&call]));
    assert!(!running(&[&call, &end]));
    assert!(!running(&[&call, &result("")]), "a turn that has ended waits for nothing");
    assert!(!running(&[&sub_call]), "the call of the sub-agent itself is what runs");
}

#[test]
fn a_background_task_goes_on_after_the_result() {
    let line = |subtype: &str, more: &str| format!(r#"{{"type":"system","subtype":"{subtype}"{more}}}"#);
    let started = line("task_started", r#","task_id":"t","is_backgrounded":true"#);
    let in_front = line("task_started", r#","task_id":"t","is_backgrounded":false"#);
    let moved = line("task_updated", r#","task_id":"t","patch":{"is_backgrounded":true}"#);
    let ended = line("task_updated", r#","task_id":"t","patch":{"status":"completed"}"#);
    let notified = line("task_notification", r#","task_id":"t","status":"completed""#);
    let listed = line("background_tasks_changed", r#","tasks":[{"task_id":"t"}]"#);
    let emptied = line("background_tasks_changed", r#","tasks":[]"#);
    for (lines, background) in [
        (vec![&started], true),
        (vec![&in_front], false),
        (vec![&in_front, &moved], true),
        (vec![&started, &ended], false),
        (vec![&started, &notified], false),
        (vec![&listed], true),
        (vec![&listed, &emptied], false),
    ] {
        let mut lines: Vec<_> = lines.into_iter().cloned().collect();
        lines.push(result(""));
        assert_eq!(activity(&lines), Activity { background, ..Activity::default() }, "{lines:?}");
    }
}
