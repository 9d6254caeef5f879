//! Whatever an agent does: the events that repeat a text have exactly what was streamed before, however the journal is
//! divided into pages.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenrail_domain::{
    CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, MessageOutcome, Part, ToolCall,
    ToolResult, TurnOutcome,
};
use tokenrail_ports::testing::samples::{self, Scribe};

use super::{RESULT_BYTES, events, new};
use crate::fold::Fold as _;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;
use crate::vocabularies::openai::writer::Writer as _;

fn any_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "\"\n\u{1}", "é🦀", "\0"]).prop_map(str::to_owned)
}

fn any_call() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["c1", "c2"]).prop_map(str::to_owned)
}

fn any_place() -> impl Strategy<Value = (MessageOrdinal, Part)> {
    (0..2_u32, 0..2_u32).prop_map(|(message, part)| (MessageOrdinal(message), Part(part)))
}

fn any_block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        any_text().prop_map(ContentBlock::Text),
        any_text().prop_map(ContentBlock::Reasoning),
        (any_call(), any_text()).prop_map(|(call, tool)| ContentBlock::ToolUse {
            call,
            tool,
            input: samples::json(r#"{"whole":1}"#)
        }),
    ]
}

fn any_body() -> impl Strategy<Value = EventBody> {
    let tool = || prop::option::of(prop::sample::select(vec!["Bash", "Read"]));
    let blocks = || prop::collection::vec(any_block(), 0..4);
    prop_oneof![
        4 => (any_place(), any_text())
            .prop_map(|((message, part), text)| EventBody::TextDelta { message, part, text }),
        3 => (any_place(), any_text())
            .prop_map(|((message, part), text)| EventBody::ReasoningDelta { message, part, text }),
        4 => (any_place(), any_call(), tool(), any_text()).prop_map(|((message, part), call, tool, fragment)| {
            let tool = tool.map(str::to_owned);
            EventBody::ToolInputDelta { message, part, call, tool, fragment }
        }),
        1 => any_call().prop_map(|call| EventBody::ToolCall(Box::new(ToolCall {
            call,
            tool: "Bash".into(),
            input: samples::json(r#"{"whole":2}"#),
            parent_call: None,
        }))),
        1 => (any_call(), any_text(), any::<bool>()).prop_map(|(call, text, is_error)| {
            let content = samples::json(&json!(text).to_string());
            EventBody::ToolResult(Box::new(ToolResult { call, content, is_error, parent_call: None, patch: None }))
        }),
        1 => (any_place(), blocks()).prop_map(|((message, _), blocks)| {
            let (first_sequence, parent_call) = (None, None);
            let outcome = MessageOutcome::Complete;
            let message = CompleteMessage { message, blocks, first_sequence, outcome, parent_call };
            EventBody::Message(Box::new(message))
        }),
        1 => any_place().prop_map(|(message, _)| EventBody::Abandoned { message }),
    ]
}

fn any_turn() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_body(), 0..40).prop_map(|bodies| {
        let (agent, turn) = samples::launch(7);
        let mut scribe = Scribe::new(&agent);
        let mut events = scribe.start(&turn).events.to_vec();
        events.extend_from_slice(&scribe.say(bodies).events);
        events.extend_from_slice(&scribe.end_with(samples::result(TurnOutcome::Completed)).events);
        events
    })
}

/// The stream of a turn, whose journal is read again in pages of this many events.
fn streamed(turn: &[Event], page: usize) -> String {
    let mut fold = new(RESULT_BYTES);
    let mut out = UnsentWriter::new(0);
    fold.open(&mut out);
    for event in turn {
        fold.event(event, &mut out);
    }
    out.unsent_mut().out.filled_by(turn, page)
}

/// What an item says in an event about it.
fn text_of(item: &Value) -> &Value {
    match item["type"].as_str().unwrap() {
        "message" => &item["content"][0]["text"],
        "reasoning" => &item["summary"][0]["text"],
        _ => &item["arguments"],
    }
}

proptest! {
    #[test]
    fn what_is_repeated_is_what_was_streamed(turn in any_turn()) {
        let text = streamed(&turn, usize::MAX);
        prop_assert_eq!(&streamed(&turn, 1), &text);
        let stream = events(&text);
        let (mut said, mut names, mut done) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for event in &stream {
            let Some(at) = event["output_index"].as_u64() else { continue };
            let so_far: &mut String = said.entry(at).or_default();
            so_far.push_str(event["delta"].as_str().unwrap_or_default());
            match event["type"].as_str().unwrap() {
                "response.output_item.added" => {
                    names.insert(at, event["item"]["name"].clone());
                }
                "response.output_text.done" | "response.reasoning_summary_text.done" => {
                    prop_assert_eq!(&event["text"], &json!(so_far));
                }
                "response.content_part.done" | "response.reasoning_summary_part.done" => {
                    prop_assert_eq!(&event["part"]["text"], &json!(so_far));
                }
                "response.mcp_call_arguments.done" => {
                    let whole = event["arguments"].as_str().unwrap();
                    prop_assert!(whole == so_far.as_str() || whole.starts_with(r#"{"whole":"#), "{}", event);
                    whole.clone_into(so_far);
                }
                "response.output_item.done" => {
                    prop_assert_eq!(text_of(&event["item"]), &json!(so_far));
                    prop_assert_eq!(&event["item"]["name"], &names[&at]);
                    done.push(event["item"].clone());
                }
                _ => {}
            }
        }
        let whole = &stream.last().unwrap()["response"]["output"];
        prop_assert!(whole.as_array().unwrap().iter().all(|item| done.contains(item)), "{}", whole);
    }
}
