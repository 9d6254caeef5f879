//! The Agent Client Protocol (ACP): cases, and a second, independent reader of its recordings.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokenrail_domain::MessageOutcome;

use crate::Format::Acp;
use crate::fixtures::FormatRecording;
use crate::truth::{Truth, joined, with_surrogates_spelled};

/// The content of a recording, as far as it has been read.
#[derive(Default)]
pub(crate) struct AcpTruth {
    truth: Truth,
    is_loading: bool,
    /// The current message: its kind, its id, and its text so far.
    open: Option<(Value, Value, String)>,
    calls: BTreeMap<String, Value>,
    done: Vec<String>,
    order: Vec<String>,
}

impl AcpTruth {
    pub(crate) fn of(recording: &FormatRecording) -> Truth {
        let mut read = Self::default();
        for line in recording.lines() {
            let Ok(line) = serde_json::from_str::<Value>(&with_surrogates_spelled(line)) else { continue };
            read.line(&line);
        }
        read.end(false);
        for id in &read.order {
            let (tool, input) = called(&read.calls[id]);
            read.truth.calls.push((id.clone(), tool, input));
        }
        read.truth
    }

    fn line(&mut self, line: &Value) {
        match (line["tokenrail"].as_str(), line["method"].as_str()) {
            (Some("sent"), Some("session/load")) => self.is_loading = true,
            (Some("sent"), Some("session/prompt")) => self.is_loading = false,
            (_, Some("session/update")) if !self.is_loading => self.update(&line["params"]["update"]),
            (_, Some("session/request_permission")) => self.call(&line["params"]["toolCall"], true),
            _ => {}
        }
        if let Some(reason) = line["result"]["stopReason"].as_str() {
            self.end(!matches!(reason, "cancelled"));
        }
    }

    fn update(&mut self, update: &Value) {
        let kind = &update["sessionUpdate"];
        match kind.as_str().unwrap() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let (text, id) = (update["content"]["text"].as_str().unwrap(), &update["messageId"]);
                if !matches!(&self.open, Some((open, open_id, _)) if open == kind && open_id == id) {
                    self.end(true);
                    self.open = Some((kind.clone(), id.clone(), String::new()));
                }
                self.open.as_mut().unwrap().2.push_str(text);
            }
            "tool_call" | "tool_call_update" => self.call(update, false),
            _ => {}
        }
    }

    fn call(&mut self, update: &Value, is_question: bool) {
        self.end(true);
        let id = update["toolCallId"].as_str().unwrap().to_owned();
        if self.done.contains(&id) {
            return;
        }
        if !self.order.contains(&id) {
            self.order.push(id.clone());
        }
        let known = self.calls.entry(id.clone()).or_insert_with(|| json!({ "first": update }));
        // A permission request may describe the call in other words.
        if !is_question || known["rawInput"].is_null() {
            for (name, value) in update.as_object().unwrap() {
                if *name != "rawInput" || value.as_object().is_none_or(|input| !input.is_empty()) {
                    known[name] = value.clone();
                }
            }
        }
        let delta = &update["_meta"]["terminal_output_delta"];
        if let (Some(terminal), Some(data)) = (delta["terminal_id"].as_str(), delta["data"].as_str()) {
            let shown = known["shown"][terminal].as_str().unwrap_or_default().to_owned();
            known["shown"][terminal] = json!(shown + data);
        }
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            let content = given(known);
            self.truth.results.push((id.clone(), content));
            self.done.push(id);
        }
    }

    fn end(&mut self, is_complete: bool) {
        let Some((kind, _, said)) = self.open.take() else { return };
        let said = joined(&said);
        if said.is_empty() {
            return;
        }
        let words = if kind == "agent_message_chunk" { (said, String::new()) } else { (String::new(), said) };
        if is_complete { &mut self.truth.messages } else { &mut self.truth.open }.push(words);
    }
}

/// The tool and its input.
fn called(known: &Value) -> (String, Value) {
    let first = &known["first"];
    let is_word = |title: &&str| title.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let begins = first["sessionUpdate"] == "tool_call" && first["status"] == "pending";
    let title = first["title"].as_str();
    let by_title = title.filter(|_| begins).filter(is_word);
    let kind = first["kind"].as_str().filter(|kind| *kind != "other");
    let tool = known["name"].as_str().or(by_title).or(kind).or(title).unwrap().to_owned();
    if !known["rawInput"].is_null() {
        return (tool, known["rawInput"].clone());
    }
    let mut input = json!({ "title": first["title"] });
    for name in ["locations", "content"] {
        if first[name].as_array().is_some_and(|list| !list.is_empty()) {
            input[name] = first[name].clone();
        }
    }
    (tool, input)
}

/// The result of a call.
fn given(known: &Value) -> Value {
    let pieces = known["content"].as_array().cloned().unwrap_or_default();
    let has_change = pieces.iter().any(|piece| piece["type"] == "diff");
    if known["rawOutput"].is_string() && !has_change {
        return known["rawOutput"].clone();
    }
    if pieces.is_empty() && known["shown"].is_object() {
        let shown = known["shown"].as_object().unwrap().values();
        return json!(shown.map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join("\n"));
    }
    if pieces.is_empty() {
        return if known["rawOutput"].is_null() { json!("") } else { known["rawOutput"].clone() };
    }
    let texts = pieces.iter().map(|piece| match piece["type"].as_str().unwrap() {
        "content" => piece["content"]["text"].as_str().unwrap().to_owned(),
        "terminal" => {
            let shown = &known["shown"][piece["terminalId"].as_str().unwrap()];
            shown.as_str().unwrap_or_default().to_owned()
        }
        _ => change(piece),
    });
    json!(texts.collect::<Vec<_>>().join("\n"))
}

fn change(piece: &Value) -> String {
    let lines =
        |text: &Value| text.as_str().unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (lines(&piece["oldText"]), lines(&piece["newText"]));
    let shorter = old.len().min(new.len());
    let before = (0..shorter).find(|at| old[*at] != new[*at]).unwrap_or(shorter);
    let rest = shorter - before;
    let is_other = |at: &usize| old[old.len() - 1 - at] != new[new.len() - 1 - at];
    let after = (0..rest).find(is_other).unwrap_or(rest);
    let removed = old[before..old.len() - after].iter().map(|line| format!("-{line}"));
    let added = new[before..new.len() - after].iter().map(|line| format!("+{line}"));
    let head = format!("{}, from line {}", piece["path"].as_str().unwrap(), before + 1);
    std::iter::once(head).chain(removed).chain(added).collect::<Vec<_>>().join("\n")
}

/// A line with an update.
fn update(update: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

fn said(kind: &str, text: &str) -> String {
    update(&format!(r#"{{"sessionUpdate":"{kind}","content":{{"type":"text","text":"{text}"}}}}"#))
}

fn sent(id: u64, method: &str) -> String {
    format!(r#"{{"tokenrail":"sent","id":{id},"method":"{method}"}}"#)
}

fn prompt_answered(result: &str) -> [String; 2] {
    [sent(7, "session/prompt"), format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#)]
}

fn refused(method: &str, error: &str) -> [String; 2] {
    [sent(7, method), format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#)]
}

#[test]
fn a_message_ends_where_another_kind_or_id_or_a_tool_call_begins() {
    let with_id = |id: &str, text: &str| {
        let content = format!(r#""content":{{"type":"text","text":"{text}"}}"#);
        update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}",{content}}}"#))
    };
    let lines = [
        said("agent_thought_chunk", "a"),
        said("agent_message_chunk", "b"),
        said("agent_message_chunk", "c"),
        with_id("m", "d"),
        with_id("n", "e"),
        update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"in_progress"}"#),
        with_id("n", "f"),
    ];
    let expected = [
        "session s",
        r#"0.0 thinks "a""#,
        "0 end complete",
        r#"1.0 text "b""#,
        r#"1.0 text "c""#,
        "1 end complete",
        r#"2.0 text "d""#,
        "2 end complete",
        r#"3.0 text "e""#,
        "3 end complete",
        r#"4 message complete + use c t {"title":"t"}"#,
        r#"call c t {"title":"t"}"#,
        r#"5.0 text "f""#,
    ];
    Acp.check(&lines, &expected);
}

#[test]
fn a_tool_call_is_said_when_its_input_is_there_and_once() {
    let call = |rest: &str| update(&format!(r#"{{"toolCallId":"c",{rest}}}"#));
    let lines = [
        call(
            r#""sessionUpdate":"tool_call","title":"Terminal","name":"Bash","status":"pending","rawInput":{}"#,
        ),
        call(r#""sessionUpdate":"tool_call_update","rawInput":{"a":1}"#),
        call(r#""sessionUpdate":"tool_call_update","rawInput":{"a":1,"b":2}"#),
        update(r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#),
        call(r#""sessionUpdate":"tool_call_update","rawInput":{"other":3}"#),
        call(r#""sessionUpdate":"tool_call_update","status":"failed","rawOutput":"no""#),
        call(r#""sessionUpdate":"tool_call_update","status":"completed","rawOutput":"yes""#),
    ];
    let said = Acp.parse(lines.iter().map(String::as_bytes));
    let seen = crate::pump::pump(&said);
    assert_eq!(seen.calls.len(), 1);
    assert_eq!((seen.calls[0].tool.as_str(), seen.calls[0].input.as_str()), ("Bash", r#"{"a":1,"b":2}"#));
    assert_eq!(seen.results.len(), 1);
    assert_eq!((seen.results[0].content.as_str(), seen.results[0].is_error), (r#""no""#, true));
}

#[test]
fn a_call_that_was_only_asked_for_is_said_and_keeps_the_agent_busy() {
    let asked = r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"ls","kind":"execute"}}}"#;
    let question = r#"{"tokenrail":"permission_request","requestId":"1-1","toolName":"execute","input":{},"options":[]}"#;
    let resolved = r#"{"tokenrail":"permission_resolved","requestId":"1-1","by":"user"}"#;
    let done = update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}"#);
    let busy = |lines: &[&str]| Acp.activity(lines.iter().map(|line| line.as_bytes())).tool_running;
    assert!(busy(&[question]) && !busy(&[question, resolved]));
    assert!(busy(&[asked, question, resolved]) && !busy(&[asked, question, resolved, &done]));
}

#[test]
fn what_a_terminal_shows_is_the_result_of_its_command() {
    let call =
        |rest: &str| update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c"{rest}}}"#));
    let begins = call(r#","status":"in_progress","content":[{"type":"terminal","terminalId":"t"}]"#);
    let shows = |data: &str| {
        call(&format!(r#","_meta":{{"terminal_output_delta":{{"terminal_id":"t","data":"{data}"}}}}"#))
    };
    let ends = |how: &str| {
        call(&format!(r#","status":"completed","_meta":{{"terminal_exit":{{"terminal_id":"t",{how}}}}}"#))
    };
    for (how, result) in [
        (r#""exit_code":0,"signal":null"#, r#"result c "one\ntwo\n""#),
        (r#""exit_code":3,"signal":null"#, r#"result c failed "one\ntwo\n""#),
        (r#""exit_code":null,"signal":"SIGKILL""#, r#"result c failed "one\ntwo\n""#),
    ] {
        let lines = [begins.clone(), shows(r"one\n"), shows(r"two\n"), ends(how)];
        let said = Acp.parse(lines.iter().map(String::as_bytes));
        let rendered = crate::rendering::Rendering { text_max: 1000 }.each(&said);
        assert_eq!(rendered.last().unwrap(), result, "{how}");
    }
}

#[test]
fn what_a_command_prints_without_a_terminal_is_its_result() {
    let call =
        |rest: &str| update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c"{rest}}}"#));
    let lines = [
        call(
            r#","status":"in_progress","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"found"}}"#,
        ),
        call(r#","status":"completed","rawOutput":{"exit_code":1}"#),
    ];
    let said = Acp.parse(lines.iter().map(String::as_bytes));
    let rendered = crate::rendering::Rendering { text_max: 1000 }.each(&said);
    assert_eq!(rendered.last().unwrap(), r#"result c failed "found""#);
}

#[test]
fn what_a_session_was_before_is_not_said_again() {
    let lines = [
        sent(1, "session/load"),
        said("user_message_chunk", "old question"),
        said("agent_message_chunk", "old answer"),
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#.to_owned(),
        said("agent_thought_chunk", "told late"),
        update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"completed"}"#),
        update(r#"{"sessionUpdate":"current_mode_update","currentModeId":"plan"}"#),
        sent(2, "session/prompt"),
        said("agent_message_chunk", "new"),
    ];
    let mode = r#"notice current_mode_update {"sessionUpdate":"current_mode_update","currentModeId":"plan"}"#;
    let said = Acp.parse(lines.iter().map(String::as_bytes));
    let rendered = crate::rendering::Rendering { text_max: 1000 }.each(&said);
    assert_eq!(rendered.len(), 3, "{rendered:?}");
    assert!(mode.starts_with(&rendered[1]) && rendered[2] == r#"0.0 text "new""#, "{rendered:?}");
}

#[test]
fn a_session_that_is_lost_is_told_and_the_turn_goes_on_in_another() {
    let mut lines = refused("session/load", r#"{"code":-32002,"message":"Resource not found"}"#).to_vec();
    lines.push(r#"{"tokenrail":"session_lost","sessionId":"old","text":"it begins anew"}"#.to_owned());
    lines.push(sent(2, "session/new"));
    lines.push(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"new"}}"#.to_owned());
    Acp.check(&lines, &["notice session_lost", "session new"]);
}

#[test]
fn a_session_that_is_refused_ends_the_turn_in_the_words_of_the_agent() {
    let mut lines = refused("session/resume", r#"{"code":-32603,"message":"fetch failed"}"#).to_vec();
    Acp.check(&lines, &[]);
    lines.push(r#"{"tokenrail":"error","class":"unknown","code":"resume_refused","text":"x"}"#.to_owned());
    let expected = [
        r#"error network recoverable "fetch failed""#,
        r#"close "" error network recoverable "fetch failed""#,
    ];
    Acp.check(&lines, &expected);
}

#[test]
fn what_comes_after_the_end_begins_no_turn() {
    let mut lines = prompt_answered(r#"{"stopReason":"end_turn"}"#).to_vec();
    lines.push(said("agent_message_chunk", "too late"));
    lines.push(update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","status":"in_progress"}"#));
    let expected =
        ["usage end_turn {}", r#"close """#, "session s", "notice agent_message_chunk", "notice tool_call"];
    Acp.check(&lines, &expected);
}

#[test]
fn who_speaks_with_the_agent_ends_the_turn_where_he_cannot_go_on() {
    let gives_up = r#"{"tokenrail":"error","class":"process","code":"no_answer","text":"it hangs"}"#;
    let lines = [
        said("agent_message_chunk", "a"),
        gives_up.to_owned(),
        said("agent_message_chunk", "b"),
        gives_up.to_owned(),
    ];
    let said = Acp.parse(lines.iter().map(String::as_bytes));
    let ends = said.iter().filter(|said| matches!(said, tokenrail_domain::Said::Close(_))).count();
    let seen = crate::pump::pump(&said);
    assert_eq!((ends, seen.messages.len(), seen.open.len()), (1, 0, 1), "{said:?}");
    assert_eq!(seen.open[0].text(), "a");
}

#[test]
fn the_reason_for_which_the_agent_stops_is_how_the_turn_ends() {
    for (reason, error) in [
        ("end_turn", None),
        ("something_new", None),
        ("max_tokens", Some("invalid_request")),
        ("max_turn_requests", Some("invalid_request")),
        ("refusal", Some("invalid_request")),
        ("cancelled", Some("unknown")),
    ] {
        let lines = prompt_answered(&format!(r#"{{"stopReason":"{reason}"}}"#));
        let said = Acp.parse(lines.iter().map(String::as_bytes));
        let Some(tokenrail_domain::Said::Close(close)) = said.last() else { panic!("{said:?}") };
        assert_eq!(close.error.as_ref().map(|error| error.class.as_str()), error, "{reason}");
        assert_eq!(close.interrupted, reason == "cancelled", "{reason}");
    }
}

#[test]
fn errors_are_classed_by_code_then_by_text() {
    for (error, class) in [
        (r#"{"code":-32000,"message":"Authentication required"}"#, "authentication"),
        (r#"{"code":-32002,"message":"no session"}"#, "invalid_request"),
        (r#"{"code":429,"message":"x"}"#, "rate_limit"),
        (r#"{"code":-32603,"message":"Internal error","data":{"details":"Overloaded"}}"#, "overloaded"),
        (r#"{"code":-32603,"message":"Internal error","data":"fetch failed"}"#, "network"),
        (r#"{"code":-32603}"#, "unknown"),
        ("7", "unknown"),
    ] {
        let lines = refused("session/prompt", error);
        let said = Acp.parse(lines.iter().map(String::as_bytes));
        let Some(tokenrail_domain::Said::Close(close)) = said.last() else { panic!("{error}: {said:?}") };
        assert_eq!(close.error.as_ref().unwrap().class.as_str(), class, "{error}");
    }
}

#[test]
fn an_error_is_the_end_only_where_there_is_no_turn_without_an_answer() {
    Acp.check(&refused("session/set_mode", r#"{"code":1}"#), &["notice control_error"]);
    Acp.check(&refused("session/new", r#"{"code":-32000}"#), &[]);
    let ended = refused("session/set_model", r#"{"code":-32602,"message":"no such model"}"#);
    let said = Acp.parse(ended.iter().map(String::as_bytes));
    assert!(matches!(said.last(), Some(tokenrail_domain::Said::Close(_))), "{said:?}");
}

#[test]
fn what_is_not_known_is_a_notice() {
    let lines = [
        update(r#"{"sessionUpdate":"from_the_future"}"#),
        r#"{"method":"_own/thing","params":{}}"#.to_owned(),
        r#"{"id":1,"method":"terminal/create","params":{}}"#.to_owned(),
        update(r#"{"sessionUpdate":"plan","entries":[]}"#),
        r#"{"id":99,"result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0"}"#.to_owned(),
    ];
    let expected = [
        "session s",
        "notice from_the_future",
        "notice _own/thing",
        "notice terminal/create",
        "notice todo_list",
        "notice control_error",
        "notice untyped",
    ];
    Acp.check(&lines, &expected);
}

#[test]
fn what_is_no_text_is_a_message_of_its_own() {
    let picture = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;
    let line = update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{picture}}}"#));
    let seen =
        crate::pump::pump(&Acp.parse([said("agent_message_chunk", "See:").as_bytes(), line.as_bytes()]));
    assert_eq!(seen.messages.len(), 2);
}

#[test]
fn an_answer_that_the_agent_had_said_anew_is_not_complete() {
    let outcomes = |case: &str| {
        let named = |recording: &&FormatRecording| {
            recording.name.ends_with(case) && recording.name.contains("claude-agent")
        };
        let recording = crate::fixtures::recordings().iter().find(named).unwrap();
        let seen = crate::pump::pump(&Acp.parse(recording.lines()));
        seen.messages.iter().map(|message| message.outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("/err_drop"), [MessageOutcome::Failed; 6], "its stream was dropped each time");
    assert_eq!(outcomes("/max_tokens"), [MessageOutcome::Complete; 4], "the model has ended each of them");
}

/// A piece of the message with this id.
fn piece(id: &str, text: &str) -> String {
    let content = format!(r#""content":{{"type":"text","text":"{text}"}}"#);
    update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}",{content}}}"#))
}

/// The outcomes of the messages in these lines.
fn outcomes(lines: &[String]) -> Vec<MessageOutcome> {
    let said = Acp.parse(lines.iter().map(String::as_bytes));
    let ends = said.iter().filter_map(|said| match said {
        tokenrail_domain::Said::End { outcome, .. } => Some(*outcome),
        _ => None,
    });
    ends.collect()
}

#[test]
fn an_agent_is_known_again_in_the_further_turns_of_its_process() {
    let further = |named: &[&str]| {
        let head = [r#"{"tokenrail":"further","turn":2}"#].into_iter().chain(named.iter().copied());
        let head = head.chain([r#"{"tokenrail":"sent","id":4,"method":"session/prompt"}"#]);
        let mut lines: Vec<String> = head.map(str::to_owned).collect();
        lines.extend([piece("A", "This half is c"), piece("B", "The whole answer.")]);
        lines.push(r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}"#.to_owned());
        outcomes(&lines)
    };
    let (failed, complete) = (MessageOutcome::Failed, MessageOutcome::Complete);
    let claude = r#"{"tokenrail":"agent","name":"@agentclientprotocol/claude-agent-acp"}"#;
    assert_eq!(further(&[claude]), [failed, complete]);
    assert_eq!(further(&[r#"{"tokenrail":"agent","name":"opencode"}"#]), [complete, complete]);
    assert_eq!(further(&[]), [complete, complete], "a spool of an earlier release is read as ever");
}

#[test]
fn a_text_that_is_open_when_the_turn_is_cancelled_is_not_complete() {
    let begins = || {
        let running = r#"{"sessionUpdate":"tool_call","toolCallId":"t","status":"in_progress"}"#;
        let lines = [r#"{"tokenrail":"sent","id":2,"method":"session/prompt"}"#.to_owned(), update(running)];
        lines.into_iter().chain([piece("C", "While it runs I explain that this sen")])
    };
    let cancel = || r#"{"tokenrail":"cancel"}"#.to_owned();
    let tool_ends = || update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}"#);
    let ended = |reason: &str| format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"stopReason":"{reason}"}}}}"#);
    let complete = MessageOutcome::Complete;

    let cut: Vec<String> = begins().chain([cancel(), tool_ends(), ended("cancelled")]).collect();
    assert_eq!(outcomes(&cut), [], "whoever ends the turn ends it");
    let replaced: Vec<String> =
        begins().chain([cancel(), piece("D", "Stopped."), ended("cancelled")]).collect();
    assert_eq!(outcomes(&replaced), [MessageOutcome::Cancelled]);
    // The cancel came too late.
    let whole: Vec<String> = begins().chain([cancel(), tool_ends(), ended("end_turn")]).collect();
    assert_eq!(outcomes(&whole), [complete]);
    let before: Vec<String> = begins().chain([tool_ends(), cancel(), ended("cancelled")]).collect();
    assert_eq!(outcomes(&before), [complete], "it had ended");
}
