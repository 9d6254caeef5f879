//! The agent prints its messages both in pieces and whole: what a user finally sees must equal the whole ones. These
//! tests read the whole messages independently of the parser.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokenrail_domain::{CompleteMessage, ToolCall};

use crate::fixtures::{Recording, recordings};
use crate::parse;
use crate::pump::{pump, reasoning};

/// The sub-agent's call of a message, its text, and its reasoning.
type Words = (Option<String>, String, String);

/// The agent's own messages.
#[derive(Default)]
struct Truth {
    /// In the order of their beginnings: the message id, or the line number if the message was not streamed.
    order: Vec<String>,
    words: BTreeMap<String, Words>,
    /// The ids of streamed messages.
    streamed: BTreeSet<String>,
    /// Streamed messages that ended. Those that did not were restarted, except the last one.
    ended: BTreeSet<String>,
    /// The text and reasoning in the deltas of each streamed message.
    deltas: BTreeMap<String, (String, String)>,
    calls: Vec<(String, String, Value, Option<String>)>,
    results: Vec<(String, Value)>,
}

impl Truth {
    fn of(recording: &Recording) -> Self {
        let mut truth = Self::default();
        let mut current = String::new();
        let mut number = 0;
        for line in recording.lines() {
            let Ok(line) = serde_json::from_str::<Value>(&without_lone_surrogates(line)) else { continue };
            let lines = if let Value::Array(lines) = line { lines } else { vec![line] };
            for line in lines {
                number += 1;
                match line["type"].as_str() {
                    Some("stream_event") => truth.event(&line["event"], &mut current),
                    Some("assistant") => truth.assistant(&line, number),
                    Some("user") => truth.user(&line),
                    // A retry discards the message so far.
                    Some("system") if line["subtype"] == "api_retry" => {
                        truth.ended.insert(current.clone());
                    }
                    _ => {}
                }
            }
        }
        truth
    }

    fn event(&mut self, event: &Value, current: &mut String) {
        let delta = &event["delta"];
        match event["type"].as_str() {
            Some("message_start") => {
                event["message"]["id"].as_str().unwrap().clone_into(current);
                self.streamed.insert(current.clone());
                self.order.push(current.clone());
            }
            Some("content_block_delta") => {
                let (text, thinking) = self.deltas.entry(current.clone()).or_default();
                text.push_str(delta["text"].as_str().unwrap_or_default());
                thinking.push_str(delta["thinking"].as_str().unwrap_or_default());
            }
            Some("message_stop") => {
                self.ended.insert(current.clone());
            }
            _ => {}
        }
    }

    fn assistant(&mut self, line: &Value, number: usize) {
        let message = &line["message"];
        let parent = line["parent_tool_use_id"].as_str().map(str::to_owned);
        let blocks = message["content"].as_array().unwrap();
        let first = blocks[0]["text"].as_str().unwrap_or_default();
        let synthetic = message["model"] == "<synthetic>";
        if line["error"].is_string() || synthetic && (first.starts_with("API E") || first.contains("API key"))
        {
            return;
        }
        let id = message["id"].as_str().unwrap();
        let id = if self.streamed.contains(id) { id.to_owned() } else { format!("line {number}") };
        if !self.order.contains(&id) {
            self.order.push(id.clone());
        }
        let words = self.words.entry(id).or_insert_with(|| (parent.clone(), String::new(), String::new()));
        for block in blocks {
            words.1.push_str(block["text"].as_str().unwrap_or_default());
            words.2.push_str(block["thinking"].as_str().unwrap_or_default());
            if block["type"] == "tool_use" {
                let of = |field: &str| block[field].as_str().unwrap().to_owned();
                self.calls.push((of("id"), of("name"), block["input"].clone(), parent.clone()));
            }
        }
    }

    fn user(&mut self, line: &Value) {
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                let call = block["tool_use_id"].as_str().unwrap().to_owned();
                self.results.push((call, block["content"].clone()));
            }
        }
    }

    /// The messages that ended, and the text so far of a message without an end.
    fn messages(&self) -> (Vec<Words>, Vec<Words>) {
        let (mut whole, mut open) = (Vec::new(), Vec::new());
        let of_main_thread = |id: &&String| self.words.get(*id).is_none_or(|(parent, ..)| parent.is_none());
        // If a later message follows, it repeats one that has not ended.
        let last = self.order.iter().rfind(of_main_thread);
        for id in &self.order {
            let words = self.words.get(id);
            let is_repeated = words.is_some_and(|(_, text, thinking)| {
                self.deltas.get(id).is_some_and(|deltas| (&deltas.0, &deltas.1) == (text, thinking))
            });
            let cut = Some(id) == last && !self.ended.contains(id) && !is_repeated;
            if let Some((text, thinking)) = self.deltas.get(id).filter(|_| cut) {
                open.push((None, text.clone(), thinking.clone()));
            } else {
                whole.extend(words.cloned());
            }
        }
        (whole, open)
    }
}

fn words(message: &CompleteMessage) -> Words {
    (message.parent_call.clone(), message.text(), reasoning(message))
}

/// The messages of the main thread and of each sub-agent, in order. The threads are interleaved in the output.
fn by_thread(words: impl IntoIterator<Item = Words>) -> BTreeMap<Option<String>, Vec<(String, String)>> {
    let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (parent, text, thinking) in words {
        // A message with only tool calls has no words.
        if !(text.is_empty() && thinking.is_empty()) {
            threads.entry(parent).or_default().push((text, thinking));
        }
    }
    threads
}

/// Replaces what a strict reader refuses.
fn without_lone_surrogates(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut out = String::new();
    let mut rest = &line[..];
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    while let Some(at) = rest.find('\\') {
        out += &rest[..at];
        rest = &rest[at..];
        let (first, second) = (unit(rest), rest.get(6..).and_then(unit));
        let (kept, length) = match (first, second) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (&rest[..12], 12),
            (Some(0xd800..0xe000), _) => ("\\ufffd", 6),
            (Some(_), _) => (&rest[..6], 6),
            _ => (&rest[..2.min(rest.len())], 2.min(rest.len())),
        };
        out += kept;
        rest = &rest[length..];
    }
    out + rest
}

#[test]
fn what_is_seen_is_what_the_agent_calls_its_messages() {
    let mut compared = 0;
    for recording in recordings() {
        let (whole, open) = Truth::of(recording).messages();
        let seen = pump(&parse(recording.lines()));
        let threads = by_thread(seen.messages.iter().map(words));
        assert_eq!(threads, by_thread(whole), "{}", recording.name);
        assert_eq!(by_thread(seen.open.iter().map(words)), by_thread(open), "open: {}", recording.name);
        compared += threads.len();
    }
    assert!(100 < compared);
}

#[test]
fn each_tool_call_and_result_is_said_once_as_given() {
    let mut compared = 0;
    for recording in recordings() {
        let truth = Truth::of(recording);
        let seen = pump(&parse(recording.lines()));
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let call = |made: &ToolCall| {
            (made.call.clone(), made.tool.clone(), json(made.input.as_str()), made.parent_call.clone())
        };
        let calls: Vec<_> = seen.calls.iter().map(call).collect();
        assert_eq!(calls, truth.calls, "{}", recording.name);
        let results: Vec<_> =
            seen.results.iter().map(|result| (result.call.clone(), json(result.content.as_str()))).collect();
        assert_eq!(results, truth.results, "{}", recording.name);
        compared += calls.len() + results.len();
    }
    assert!(100 < compared);
}
