//! Every recording, and what its parser says.

use insta::assert_snapshot;
use serde_json::Value;
use tokenrail_domain::Said;

use crate::Format;
use crate::fixtures::recordings;
use crate::recorded::{account, named_by_recording};

#[test]
fn every_recording_says_what_it_said_before() {
    named_by_recording(|| {
        for recording in recordings() {
            let account = account(&mut *recording.format.parser(), recording.lines());
            assert_snapshot!(recording.name.replace('/', "__"), account);
        }
    });
}

#[test]
fn the_same_lines_say_the_same_twice() {
    for recording in recordings() {
        let parse = || recording.format.parse(recording.lines());
        assert_eq!(parse(), parse(), "{}", recording.name);
    }
}

/// Events with which model APIs end a response.
const ENDS_OF_APIS: [&str; 6] = [
    "message_stop",
    "error",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
];

/// Whether this line ends a turn according to the agent's format.
fn ends_turn(format: Format, line: &Value) -> bool {
    let kind = line["type"].as_str().or(line["method"].as_str());
    if format == Format::Acp {
        // If the session cannot be created or resumed, the conversation reports it.
        let is_error = line["error"].is_object() && line["id"] != 1;
        return line["result"]["stopReason"].is_string() || is_error || line["tokenrail"] == "error";
    }
    if line["tokenrail"].is_string() {
        return true;
    }
    match (format, kind) {
        (Format::OpenAiChat, _) => line["error"] != Value::Null || line["object"] == "error",
        (Format::Anthropic | Format::OpenAiResponses, Some(kind)) => ENDS_OF_APIS.contains(&kind),
        (Format::Codex, Some("turn.completed" | "turn.failed" | "turn/completed"))
        | (Format::Gemini, Some("result"))
        | (Format::Opencode, Some("error")) => true,
        (Format::Opencode, Some("step_finish")) => line["part"]["reason"] == "stop",
        _ => false,
    }
}

/// A turn that began before an upgrade of Tokenrail may have the output of the other mode.
#[test]
fn codex_recordings_say_the_same_in_both_modes() {
    for recording in recordings().iter().filter(|recording| recording.format == Format::Codex) {
        let added_line = |line: &&[u8]| line.starts_with(br#"{"tokenrail""#);
        if recording.lines().any(|line| added_line(&line)) {
            continue;
        }
        let app_server =
            crate::pump::read(&mut tokenrail_parser::CodexParser::app_server(), recording.lines());
        assert_eq!(recording.format.parse(recording.lines()), app_server, "{}", recording.name);
    }
}

#[test]
fn every_end_of_a_turn_is_said_and_no_other() {
    let mut ends = 0;
    for recording in recordings() {
        let lines = recording.lines().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let expected = lines.filter(|line| ends_turn(recording.format, line)).count();
        // The stream of a model API is one turn, whatever comes after its end.
        let expected = if recording.format.is_of_model_api() { expected.min(1) } else { expected };
        let said = recording.format.parse(recording.lines());
        let closed = said.iter().filter(|said| matches!(said, Said::Close(_))).count();
        assert_eq!(closed, expected, "{}", recording.name);
        ends += closed;
    }
    assert!(60 < ends);
}

/// Lines that display nothing, by type or method, as the parsers list them.
const SILENT: [&str; 12] = [
    "thread.started",
    "turn.started",
    "thread/started",
    "turn/started",
    "thread/status/changed",
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "turn/diff/updated",
    "item/reasoning/summaryPartAdded",
    "item/started",
    "item/completed",
    "step_start",
];

/// Events of model APIs that display nothing, as the parsers list them.
fn is_silent_in_api(format: Format, event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap_or_default();
    let choice = &event["choices"][0];
    match format {
        Format::Anthropic => {
            let delta = event["delta"]["type"].as_str().unwrap_or_default();
            ["signature_delta", "citations_delta", "audio_delta"].contains(&delta)
                || ["content_block_start", "content_block_stop", "message_delta", "ping"].contains(&kind)
        }
        Format::OpenAiChat => {
            let delta = choice["delta"].as_object();
            choice.is_null()
                || choice["finish_reason"].is_string()
                || choice["index"] == 1
                || delta.is_some_and(|delta| delta.get("content").is_some_and(|said| said == ""))
        }
        Format::OpenAiResponses => {
            let ends = ["created", "in_progress", "searching", "completed", "added", "done"];
            kind.starts_with("response.") && ends.contains(&kind.rsplit('.').next().unwrap())
        }
        _ => false,
    }
}

#[test]
fn only_lines_that_the_tables_name_say_nothing() {
    for recording in recordings() {
        let mut parser = recording.format.parser();
        let mut is_over = false;
        for line in recording.lines() {
            let mut said = Vec::new();
            parser.parse(line, &mut said);
            is_over |= said.iter().any(|said| matches!(said, Said::Close(_)));
            if !said.is_empty() || (is_over && recording.format.is_of_model_api()) {
                continue;
            }
            let read: Value = serde_json::from_slice(line).unwrap();
            let kind = read["type"].as_str().or(read["method"].as_str());
            let is_answer = read["result"].is_object() && kind.is_none();
            let is_echo = read["role"] == "user";
            let is_empty = read["item"]["text"] == "";
            let named = kind.is_some_and(|kind| SILENT.contains(&kind));
            let of_format = is_silent_in_api(recording.format, &read) || is_silent_in_acp(&read);
            assert!(is_answer || is_echo || is_empty || named || of_format, "{}: {read}", recording.name);
        }
    }
}

/// In ACP: updates of known items, lines about the connection itself, and file requests.
fn is_silent_in_acp(line: &Value) -> bool {
    let update = &line["params"]["update"];
    let is_repeated = matches!(
        update["sessionUpdate"].as_str(),
        Some(
            "user_message_chunk"
                | "tool_call"
                | "tool_call_update"
                | "agent_message_chunk"
                | "agent_thought_chunk"
        )
    );
    let is_about_files = line["method"].as_str().is_some_and(|method| method.starts_with("fs/"));
    let is_question = line["method"] == "session/request_permission";
    let is_of_session = line["error"].is_object() && line["id"] == 1;
    line["tokenrail"] == "sent" || is_repeated || is_about_files || is_question || is_of_session
}
