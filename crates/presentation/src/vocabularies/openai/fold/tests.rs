//! Streams and responses for every kind of turn.

mod any_turn;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokenrail_domain::{ContentBlock, EventBody};
use tokenrail_ports::testing::samples;

use super::{Call, ResponsesFold};
use crate::fold::{Fold as _, Silence};
use crate::tests::stories::{CASES, Story, story};
use crate::vocabularies::openai::chunks::Chunks;
use crate::vocabularies::openai::dto::{CompletionDto, Gap};
use crate::vocabularies::openai::pieces::Pieces;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::said_items::SaidItem;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;
use crate::vocabularies::openai::writer::Writer as _;
use crate::vocabularies::turns::call_digest::CallDigest;

const RESULT_BYTES: usize = 1 << 20;

fn new(result_bytes: usize) -> ResponsesFold {
    let (agent, turn) = samples::launch(7);
    ResponsesFold::new(&agent, &turn, result_bytes)
}

fn stream(story: &Story, from: u64) -> String {
    let mut fold = new(RESULT_BYTES);
    let mut out = UnsentWriter::new(from);
    fold.open(&mut out);
    for event in &story.events {
        fold.event(event, &mut out);
    }
    out.unsent_mut().out.filled(&story.events)
}

/// A response as a document, after all events of a turn.
fn whole(fold: &ResponsesFold, story: &Story) -> Value {
    let document = Pieces::document(fold.response(), fold.items()).filled(&story.events);
    serde_json::from_str(&document).unwrap()
}

/// The events of a stream. Checks that the name of each block is the type of its event.
fn events(text: &str) -> Vec<Value> {
    let blocks = text.split_terminator("\n\n").map(|block| {
        let (name, data) = block.split_once("\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name, format!("event: {}", event["type"].as_str().unwrap()));
        event
    });
    blocks.collect()
}

/// Builds the items from the events, as strictly as the clients do.
fn built(events: &[Value]) -> Vec<Value> {
    let (mut items, mut open): (Vec<Value>, BTreeMap<usize, String>) = (Vec::new(), BTreeMap::new());
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let Some(at) = event["output_index"].as_u64().map(|at| usize::try_from(at).unwrap()) else {
            continue;
        };
        if kind == "response.output_item.added" {
            assert_eq!(at, items.len(), "items are appended");
            assert!(items.iter().all(|item| item["id"] != event["item"]["id"]), "each with an id of its own");
            items.push(event["item"].clone());
            open.insert(at, String::new());
            continue;
        }
        let text = open.get_mut(&at).unwrap_or_else(|| panic!("{event} is about an item that is over"));
        if let Some(delta) = event["delta"].as_str() {
            text.push_str(delta);
        }
        for whole in ["text", "arguments"] {
            if let Some(whole) = event[whole].as_str() {
                assert_eq!(whole, text);
            }
        }
        if kind == "response.output_item.done" {
            assert_eq!(event["item"]["id"], items[at]["id"]);
            items[at] = event["item"].clone();
            open.remove(&at);
        } else {
            assert_eq!(event["item_id"], items[at]["id"]);
        }
    }
    assert!(open.is_empty(), "everything ends before the response does");
    items
}

#[test]
fn every_kind_of_turn_has_its_events() {
    for case in CASES {
        insta::assert_snapshot!(format!("{case}"), stream(&story(case), 0));
    }
}

#[test]
fn after_every_number_comes_exactly_the_rest() {
    for case in CASES {
        let story = story(case);
        let whole = events(&stream(&story, 0));
        for (number, event) in whole.iter().enumerate() {
            assert_eq!(event["sequence_number"], number, "{case}");
            assert_eq!(events(&stream(&story, number as u64)), whole[number..], "{case} from {number}");
        }
        assert_eq!(stream(&story, whole.len() as u64), "");
    }
}

#[test]
fn the_whole_response_is_what_its_stream_builds() {
    for case in CASES {
        let story = story(case);
        let streamed = events(&stream(&story, 0));
        let last = &streamed.last().unwrap()["response"];
        let mut items = built(&streamed);
        if case == "retry" {
            assert_eq!(items.remove(0)["status"], "incomplete", "the abandoned message");
        }
        assert_eq!(last["output"], json!(items), "{case}");
        let mut fold = new(RESULT_BYTES);
        for event in &story.events {
            fold.event(event, &mut Silence);
        }
        assert_eq!(&whole(&fold, &story), last, "{case}: without a stream too");
    }
}

/// The chat completion in the chunks of a stream: what is said, what is shown besides, and the last chunk.
fn completed(text: &str) -> (Option<String>, Option<String>, Value) {
    let data = text.split_terminator("\n\n").filter_map(|block| block.split_once("data: "));
    let mut chunks: Vec<&str> = data.map(|(_, data)| data).collect();
    assert_eq!(chunks.pop(), Some("[DONE]"));
    let chunks: Vec<Value> = chunks.into_iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect();
    let all = |name: &str| {
        let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str());
        Some(deltas.collect::<String>()).filter(|text| !text.is_empty())
    };
    (all("content"), all("reasoning_content"), chunks.last().unwrap().clone())
}

#[test]
fn a_chat_completion_is_what_its_chunks_say() {
    for case in CASES {
        let story = story(case);
        let (agent, turn) = samples::launch(7);
        let id = ResponseId { agent: agent.id, turn: turn.number };
        let (mut fold, mut out) = (new(RESULT_BYTES), Chunks::new(id, 0, false));
        fold.open(&mut out);
        for event in &story.events {
            fold.event(event, &mut out);
        }
        let text = out.unsent_mut().out.filled(&story.events);
        let (said, shown, last) = completed(&text);
        let has_done = fold.items().next_in(Gap::Done, 0).is_some();
        let whole = CompletionDto::new(id.completion(), fold.response(), has_done);
        let whole = Pieces::document(&whole, fold.items()).filled(&story.events);
        let whole: Value = serde_json::from_str(&whole).unwrap();
        let choice = &whole["choices"][0];
        let message = &choice["message"];
        if let Some(error) = whole.get("error") {
            assert_eq!(&last["error"], error, "{case}");
            assert_eq!((&message["content"], &message["refusal"]), (&Value::Null, &error["message"]));
        } else {
            assert_eq!(choice["finish_reason"], last["choices"][0]["finish_reason"], "{case}");
            // A stream cannot take back what the agent has abandoned.
            if case != "retry" {
                assert_eq!(message["content"].as_str(), Some(said.as_deref().unwrap_or_default()), "{case}");
                assert_eq!(message["reasoning_content"].as_str(), shown.as_deref(), "{case}");
            }
        }
        insta::assert_snapshot!(format!("{case}_chunks"), text);
        let blocks: Vec<&str> = text.split_inclusive("\n\n").collect();
        for from in 0..blocks.len() {
            let (mut fold, mut out) = (new(0), Chunks::new(id, from as u64, false));
            fold.open(&mut out);
            for event in &story.events {
                fold.event(event, &mut out);
            }
            let rest = out.unsent_mut().out.filled(&story.events);
            assert_eq!(rest, blocks[from..].concat(), "{case} from {from}");
        }
    }
}

#[test]
fn each_end_has_its_event_and_its_status() {
    for (case, kind, status) in [
        ("thinking_and_tools", "response.completed", "completed"),
        ("plain_text", "response.incomplete", "incomplete"),
        ("redacted_and_cut_short", "response.incomplete", "incomplete"),
        ("error", "response.failed", "failed"),
        ("interrupted", "response.failed", "failed"),
        ("cancel", "response.incomplete", "cancelled"),
    ] {
        let last = events(&stream(&story(case), 0)).pop().unwrap();
        assert_eq!((&last["type"], &last["response"]["status"]), (&json!(kind), &json!(status)), "{case}");
    }
}

#[test]
fn results_of_tools_beyond_the_limit_are_only_in_the_stream() {
    let story = story("parallel_tools");
    let mut fold = new(10);
    for event in &story.events {
        fold.event(event, &mut Silence);
    }
    let response = whole(&fold, &story);
    let outputs: Vec<_> = response["output"].as_array().unwrap().iter().map(|item| &item["output"]).collect();
    assert_eq!(outputs, [&Value::Null, &json!("one\ntwo"), &Value::Null]);
    assert_eq!(response["output"][0]["error"], Value::Null, "there was no room for the error");
}

#[test]
fn a_call_whose_id_is_used_again_before_its_result_ends_without_one() {
    let streamed = events(&stream(&story("id_used_again"), 0));
    let items = built(&streamed);
    let ended: Vec<_> = items.iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(
        ended,
        ["incomplete", "incomplete", "completed"],
        "neither has a result; the last is the text"
    );
    assert_eq!(streamed.last().unwrap()["response"]["output"], json!(items));
    let first_end = streamed.iter().position(|event| event["type"] == "response.output_item.done");
    let second = streamed.iter().rposition(|event| event["type"] == "response.output_item.added");
    assert!(first_end < second, "the first one ends before the second one begins");
}

#[test]
fn a_call_whose_id_is_used_again_after_its_result_is_another_call() {
    let streamed = events(&stream(&story("id_used_after_result"), 0));
    let items = built(&streamed);
    let calls = items.iter().filter(|item| item["type"] == "mcp_call");
    let calls: Vec<_> = calls.map(|item| [&item["arguments"], &item["output"]]).collect();
    assert_eq!(json!(calls), json!([[r#"{"n":0}"#, "one"], [r#"{"n":1}"#, "two"]]));
    assert_eq!(streamed.last().unwrap()["response"]["output"], json!(items));
}

#[test]
fn a_text_that_follows_an_abandoned_one_only_with_the_result_is_sent() {
    let streamed = events(&stream(&story("abandoned_text"), 0));
    let mut items = built(&streamed);
    assert_eq!(items.remove(0)["status"], "incomplete", "the abandoned message");
    assert_eq!(items[0]["content"][0]["text"], "Hello");
    assert_eq!(streamed.last().unwrap()["response"]["output"], json!(items));
}

/// What is kept of an item, as docs/explanation/reliability.md says.
#[test]
fn an_item_takes_about_200_bytes_whatever_ids_the_agent_uses() {
    let bytes = size_of::<SaidItem>() + size_of::<(CallDigest, Call)>();
    assert!(bytes <= 200, "{bytes} bytes");
    let short = story("id_used_after_result");
    let mut long = story("id_used_after_result");
    let mut fold = new(RESULT_BYTES);
    for event in &mut long.events {
        let id = "x".repeat(10_000);
        match &mut event.body {
            EventBody::ToolCall(made) => made.call = id,
            EventBody::ToolResult(result) => result.call = id,
            EventBody::Message(message) => {
                for block in &mut message.blocks {
                    let ContentBlock::ToolUse { call, .. } = block else { panic!("{block:?}") };
                    call.clone_from(&id);
                }
            }
            _ => {}
        }
        fold.event(event, &mut Silence);
        let kept = format!("{:?}", fold.calls);
        assert!(kept.len() < 1000, "{} bytes are kept", kept.len());
    }
    assert_eq!(stream(&long, 0), stream(&short, 0));
}
