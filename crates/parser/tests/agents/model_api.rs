//! The streams of model APIs: cases, and a second, independent reader of their recordings.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Format::{self, Anthropic, OpenAiChat, OpenAiResponses};
use crate::truth::Words;

/// Call id, tool and input.
type Call = (String, String, Value);

/// The response of a model, read independently of the parsers: parts by their position, whatever they are.
#[derive(Default)]
pub(crate) struct ModelApiTruth {
    text: BTreeMap<(u64, u64), String>,
    reasoning: BTreeMap<(u64, u64), String>,
    /// Call id, tool, and the input as text.
    calls: BTreeMap<u64, (String, String, String)>,
    ended: bool,
    failed: bool,
}

impl ModelApiTruth {
    pub(crate) fn event(&mut self, format: Format, event: &Value) {
        if self.ended || self.failed {
            return;
        }
        self.failed |= event["tokenrail"] == "error"
            || event["error"] != Value::Null
            || event["type"] == "error"
            || event["object"] == "error";
        match format {
            Anthropic => self.anthropic(event),
            OpenAiChat => self.chat(event),
            _ => self.responses(event),
        }
    }

    /// Some streams end this way instead of with an event.
    pub(crate) fn done(&mut self) {
        self.ended |= !self.failed;
    }

    /// Adds what a user must see.
    pub(crate) fn tell(&self, messages: &mut Vec<Words>, open: &mut Vec<Words>, calls: &mut Vec<Call>) {
        let joined = |parts: &BTreeMap<(u64, u64), String>| parts.values().cloned().collect::<String>();
        let words = (joined(&self.text), joined(&self.reasoning));
        if self.ended {
            messages.push(words);
        } else if words != Words::default() {
            open.push(words);
        }
        calls.extend(self.calls.values().map(|(call, tool, input)| {
            let given = if input.is_empty() { "{}" } else { input };
            let input = serde_json::from_str(given).ok().filter(Value::is_object);
            (call.clone(), tool.clone(), input.unwrap_or_else(|| json!(given)))
        }));
    }

    fn anthropic(&mut self, event: &Value) {
        let at = event["index"].as_u64().unwrap_or(0);
        let (block, delta) = (&event["content_block"], &event["delta"]);
        if ["tool_use", "server_tool_use"].iter().any(|kind| block["type"] == *kind) {
            self.calls.insert(at, (text(&block["id"]), text(&block["name"]), String::new()));
        }
        *self.text.entry((at, 0)).or_default() += &text(&delta["text"]);
        *self.reasoning.entry((at, 0)).or_default() += &text(&delta["thinking"]);
        if let Some(call) = self.calls.get_mut(&at) {
            call.2 += &text(&delta["partial_json"]);
        }
        self.ended |= event["type"] == "message_stop";
    }

    fn chat(&mut self, event: &Value) {
        let choices = event["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            let delta = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
            *self.text.entry((0, 0)).or_default() += &text(&delta["content"]);
            *self.text.entry((0, 1)).or_default() += &text(&delta["refusal"]);
            for field in ["reasoning_content", "reasoning"] {
                *self.reasoning.entry((0, 0)).or_default() += &text(&delta[field]);
            }
            let calls = delta["tool_calls"].as_array().cloned().unwrap_or_default();
            let old = Some(json!({ "index": 0, "function": delta["function_call"] }));
            for call in calls.into_iter().chain(old.filter(|call| call["function"].is_object())) {
                let begun = self.calls.len() as u64;
                let next = if call["id"].is_string() { begun } else { begun.saturating_sub(1) };
                let known = self.calls.entry(call["index"].as_u64().unwrap_or(next)).or_default();
                known.0 += &text(&call["id"]);
                known.1 += &text(&call["function"]["name"]);
                known.2 += &text(&call["function"]["arguments"]);
            }
            self.ended |= choice["finish_reason"].is_string();
        }
    }

    fn responses(&mut self, event: &Value) {
        let at = event["output_index"].as_u64().unwrap_or(0);
        let of = |index: &str| (at, event[index].as_u64().unwrap_or(0));
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                *self.text.entry(of("content_index")).or_default() += &text(&event["delta"]);
            }
            "response.reasoning_text.delta" => {
                *self.reasoning.entry(of("content_index")).or_default() += &text(&event["delta"]);
            }
            "response.reasoning_summary_text.delta" => {
                *self.reasoning.entry(of("summary_index")).or_default() += &text(&event["delta"]);
            }
            "response.completed" | "response.incomplete" => {
                self.ended = true;
                let output = event["response"]["output"].as_array().cloned().unwrap_or_default();
                (0..).zip(&output).for_each(|(at, item)| self.item(at, item));
            }
            "response.failed" | "response.cancelled" => self.failed = true,
            _ => {}
        }
    }

    /// An item of the whole response is authoritative.
    fn item(&mut self, at: u64, item: &Value) {
        for (parts, words) in [("content", false), ("summary", true)] {
            for (place, part) in (0..).zip(item[parts].as_array().into_iter().flatten()) {
                let whole = text(&part["text"]) + &text(&part["refusal"]);
                let reasoning = words || part["type"] == "reasoning_text";
                let into = if reasoning { &mut self.reasoning } else { &mut self.text };
                into.insert((at, place), whole);
            }
        }
        if item["call_id"].is_string() {
            let input = text(&item["arguments"]) + &text(&item["input"]);
            self.calls.insert(at, (text(&item["call_id"]), text(&item["name"]), input));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_answer_without_its_end_has_failed() {
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let end = r#"{"tokenrail":"end"}"#;
    let dropped = r#"network upstream_dropped recoverable "the connection to the model API ended before the response was complete""#;
    let (told, closed) = (format!("error {dropped}"), format!(r#"close "" error {dropped}"#));
    Anthropic.check(&[delta, end, delta, "{}"], &[r#"0.0 text "a""#, &told, &closed]);
    OpenAiChat.check(&[end], &[&told, &closed]);
    OpenAiResponses.check(&[r#"{"type":"response.in_progress"}"#, end], &[&told, &closed]);
}

#[test]
fn what_the_process_says_of_an_answer_that_never_began_is_told_with_the_words_of_the_api() {
    for (body, message) in [
        (r#"{"error":{"message":"Too many"}}"#, ": Too many"),
        (r#"{"error":"Too many"}"#, ": Too many"),
        (r#"{"detail":"Too many"}"#, ": Too many"),
        ("Too many", ": Too many"),
        (" ", ""),
    ] {
        let line = json!({ "text": "the model API answered 429", "class": "rate_limit", "retryAfterMs": 5, "body": body });
        let line = line.to_string().replacen('{', r#"{"tokenrail":"error","#, 1);
        let error = format!(r#"rate_limit recoverable "the model API answered 429{message}""#);
        let expected = [format!("error {error}"), format!(r#"close "" error {error}"#)];
        for format in [Anthropic, OpenAiChat, OpenAiResponses] {
            format.check(&[&line], &[&expected[0], &expected[1]]);
        }
    }
}

#[test]
fn a_line_that_an_api_has_sent_is_none_of_our_own() {
    // The process puts a blank before such a line.
    OpenAiChat.check(&[r#" {"tokenrail":"end"}"#], &["notice untyped"]);
}

#[test]
fn errors_of_a_stream_are_classed_by_code_type_status_and_text() {
    for (error, expected) in [
        (r#"{"type":"invalid_request_error","code":"invalid_api_key","message":"m"}"#, "authentication"),
        (r#"{"type":"overloaded_error","message":"m"}"#, "overloaded recoverable"),
        (r#"{"type":"api_error","message":"m"}"#, "overloaded recoverable"),
        (r#"{"code":"context_length_exceeded","message":"m"}"#, "invalid_request"),
        (r#"{"code":"rate_limit_exceeded","message":"m"}"#, "rate_limit recoverable"),
        (r#"{"code":503,"message":"m"}"#, "overloaded recoverable"),
        (r#"{"type":"odd","message":"m"}"#, "unknown"),
        (r#""m""#, "unknown"),
    ] {
        let expected = [format!(r#"error {expected} "m""#), format!(r#"close "" error {expected} "m""#)];
        for format in [Anthropic, OpenAiChat, OpenAiResponses] {
            format.check(&[format!(r#"{{"error":{error}}}"#)], &[&expected[0], &expected[1]]);
        }
    }
}

#[test]
fn an_answer_that_is_numbered_anew_at_its_end_is_not_said_twice() {
    let lines = [
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hi"}"#,
        r#"{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#,
    ];
    let expected = [r#"0.0 text "Hi""#, "0 end complete", "usage end_turn {}", r#"close "Hi""#];
    OpenAiResponses.check(&lines, &expected);
}

#[test]
fn a_whole_part_that_differs_from_its_pieces_is_the_truth() {
    let lines = [
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Helo"}"#,
        r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Hello"}"#,
        r#"{"type":"response.completed","response":{"output":[]}}"#,
    ];
    OpenAiResponses.check(
        &lines,
        &[
            r#"0.0 text "Helo""#,
            "0 abandoned",
            r#"1 message complete + text "Hello""#,
            "usage end_turn {}",
            r#"close "Hello""#,
        ],
    );
}

#[test]
fn a_reason_that_says_that_the_answer_was_cut_is_an_error() {
    for (reason, class) in [
        ("error", "unknown"),
        ("abort", "unknown"),
        ("cancelled", "unknown"),
        ("insufficient_system_resource", "overloaded recoverable"),
        ("server_error", "overloaded recoverable"),
        ("network_error", "network recoverable"),
        ("timeout", "timeout recoverable"),
        ("something_new", "unknown"),
    ] {
        let chunk =
            format!(r#"{{"choices":[{{"delta":{{"content":"Half of"}},"finish_reason":"{reason}"}}]}}"#);
        let error = format!(r#"{class} "the model API stopped its response early: {reason}""#);
        let (told, closed) = (format!("error {error}"), format!(r#"close "" error {error}"#));
        OpenAiChat.check(&[&chunk, "[DONE]"], &[r#"0.0 text "Half of""#, &told, &closed]);
    }
}

#[test]
fn a_reason_with_which_whole_answers_end_is_no_error() {
    for reason in ["stop", "length", "tool_calls", "content_filter", "end_turn", "STOP", "eos_token"] {
        // Some servers send a meaningless reason with each piece.
        let chunks = [("Half of", ""), (" it", "null"), (", and the rest", reason)].map(|(text, reason)| {
            format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"{reason}"}}]}}"#)
        });
        let said = OpenAiChat.parse(chunks.iter().map(String::as_bytes).chain([&b"[DONE]"[..]]));
        let seen = crate::pump::pump(&said);
        assert_eq!((seen.messages.len(), seen.open.len()), (1, 0), "{reason}: {said:?}");
    }
}

#[test]
fn an_incomplete_response_is_whole_only_where_its_limit_or_a_filter_has_ended_it() {
    for (details, expected) in [
        (r#"{"reason":"max_output_tokens"}"#, None),
        (r#"{"reason":"content_filter"}"#, None),
        (r#"{"reason":"something_new"}"#, Some("something_new")),
        ("null", Some("it is incomplete")),
    ] {
        let lines = [
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Half of"}"#
                .to_owned(),
            format!(r#"{{"type":"response.incomplete","response":{{"incomplete_details":{details}}}}}"#),
        ];
        let said = OpenAiResponses.parse(lines.iter().map(String::as_bytes));
        let Some(tokenrail_domain::Said::Close(close)) = said.last() else { panic!("{said:?}") };
        let text = expected.map(|reason| format!("the model API stopped its response early: {reason}"));
        assert_eq!(close.error.as_ref().map(|error| error.text.clone()), text);
        assert_eq!(crate::pump::pump(&said).open.len(), usize::from(expected.is_some()), "{details}");
    }
}
