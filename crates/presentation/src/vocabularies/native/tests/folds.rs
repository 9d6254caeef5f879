//! The dialects that are folds.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tokenrail_domain::{
    Agent, ContentBlock, Event, EventBody, MessageOrdinal, MessageOutcome, Part, TurnNumber, TurnOutcome,
};
use tokenrail_ports::testing::samples;

use crate::fold::{Fold as _, Silence};
use crate::frames::{FrameWriter, payloads};
use crate::tests::journals::{ORPHANS, STORIES, events, written};
use crate::vocabularies::native::{Detail, Dialect, DialectFold};

pub(super) fn lines(out: FrameWriter) -> Vec<String> {
    let frames = out.into_bytes();
    payloads(&frames).map(|json| String::from_utf8(json.to_vec()).unwrap()).collect()
}

fn told(dialect: Dialect, agent: &Agent, events: &[Event]) -> Vec<String> {
    let mut fold = DialectFold::new(dialect, agent.id, Detail::Plain);
    let mut out = FrameWriter::default();
    for event in events {
        fold.event(event, &mut out);
    }
    lines(out)
}

fn stories(dialect: Dialect) -> String {
    let mut told_stories = Vec::new();
    for (name, story) in STORIES.into_iter().chain([ORPHANS]) {
        let (agent, appends) = written(story);
        let lines = told(dialect, &agent, &events(&appends));
        for line in &lines {
            let frame: Value = serde_json::from_str(line).unwrap();
            assert!(
                frame["payload"]["agentId"].is_string() && frame["payload"]["sequence"].is_u64(),
                "{line}"
            );
            assert!(
                frame["timestamp"].is_i64() && frame["sessionId"] == frame["payload"]["agentId"],
                "{line}"
            );
        }
        told_stories.push(format!("# {name}\n{}", lines.join("\n")));
    }
    told_stories.join("\n\n")
}

#[test]
fn the_dialect_message_tells_every_story() {
    insta::assert_snapshot!("message_frames", stories(Dialect::Message));
}

#[test]
fn the_dialect_stream_tells_every_story() {
    insta::assert_snapshot!("stream_frames", stories(Dialect::Stream));
}

/// One act of an agent, usually on a message.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Text(u32, String),
    Reasoning(u32),
    ToolInput(u32),
    End(u32, usize, String),
    Abandon(u32),
    Other,
    EndTurn(usize),
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..4_u32, ".{0,4}").prop_map(|(message, text)| Act::Text(message, text)),
        1 => (0..4_u32).prop_map(Act::Reasoning),
        1 => (0..4_u32).prop_map(Act::ToolInput),
        3 => (0..5_u32, 0..4_usize, ".{0,3}").prop_map(|(message, how, rest)| Act::End(message, how, rest)),
        1 => (0..4_u32).prop_map(Act::Abandon),
        1 => Just(Act::Other),
        1 => (0..4_usize).prop_map(Act::EndTurn),
    ]
}

/// The acts as a journal. It ends every message before its turn, as the journal writer does. It may contain orphans:
/// acts on messages that have ended.
pub(super) fn journal(acts: &[Act]) -> Vec<Event> {
    let mut assembler = tokenrail_domain::Assembler::default();
    let (mut events, mut turn): (Vec<Event>, _) = (Vec::new(), TurnNumber::FIRST);
    let mut push = |assembler: &mut tokenrail_domain::Assembler, turn, body: EventBody| {
        let sequence = tokenrail_domain::Sequence(events.len() as u64 + 1);
        assembler.record(sequence, &body);
        let at = tokenrail_domain::Timestamp(samples::LAUNCHED_AT.0 + sequence.0 as i64);
        events.push(Event { sequence, at, turn, body, raw: None });
    };
    for act in acts.iter().chain([&Act::EndTurn(0)]) {
        let body = match act {
            Act::Text(message, text) => samples::text_delta(*message, text),
            Act::Reasoning(message) => EventBody::ReasoningDelta {
                message: MessageOrdinal(*message),
                part: Part(1),
                text: "hm".into(),
            },
            Act::ToolInput(message) => EventBody::ToolInputDelta {
                message: MessageOrdinal(*message),
                part: Part(2),
                call: "c".into(),
                tool: None,
                fragment: "{}".into(),
            },
            Act::End(message, how, rest) => {
                let rest = vec![(Part(3), ContentBlock::Text(rest.clone()))];
                let outcome = MessageOutcome::ALL[*how];
                match assembler.complete_with(MessageOrdinal(*message), outcome, rest) {
                    Some(complete) => EventBody::Message(Box::new(complete)),
                    None => continue,
                }
            }
            Act::Abandon(message) => EventBody::Abandoned { message: MessageOrdinal(*message) },
            Act::Other => samples::notice("status"),
            Act::EndTurn(how) => {
                let open: Vec<_> = assembler.open_messages().collect();
                for message in open {
                    let complete = assembler.complete(message, MessageOutcome::Failed).unwrap();
                    push(&mut assembler, turn, EventBody::Message(Box::new(complete)));
                }
                let result = samples::result(TurnOutcome::ALL[*how]);
                push(&mut assembler, turn, EventBody::TurnResult(Box::new(result)));
                turn = turn.next();
                continue;
            }
        };
        push(&mut assembler, turn, body);
    }
    events
}

/// What a client of the dialect `message` knows about a message: the text of its chunks, and its end.
#[derive(Debug, Default)]
struct Bubble {
    text: String,
    end: Option<(String, bool, Value)>,
}

/// The client's state machine. It does not handle orphans.
fn bubbles(lines: &[String]) -> BTreeMap<String, Bubble> {
    let mut bubbles: BTreeMap<String, Bubble> = BTreeMap::new();
    for line in lines {
        let frame: Value = serde_json::from_str(line).unwrap();
        let payload = &frame["payload"];
        let id = payload["messageId"].as_str().unwrap().to_owned();
        let text = payload["content"]["text"].as_str().unwrap_or_default();
        match frame["type"].as_str().unwrap() {
            "message.start" => {
                assert!(bubbles.insert(id, Bubble::default()).is_none(), "a message begins once: {line}");
            }
            "message.chunk" => {
                let bubble = bubbles.get_mut(&id).expect("a chunk has a start");
                assert!(bubble.end.is_none() && !text.is_empty(), "{line}");
                bubble.text.push_str(text);
            }
            "message.end" => {
                let bubble = bubbles.get_mut(&id).expect("an end has a start");
                let (complete, outcome) = (payload["isComplete"].as_bool().unwrap(), &payload["outcome"]);
                let end = (text.to_owned(), complete, outcome.clone());
                assert!(bubble.end.replace(end).is_none(), "a message ends once: {line}");
            }
            "message.new" => {}
            other => panic!("{other}"),
        }
    }
    bubbles
}

proptest! {
    #[test]
    fn a_message_begins_once_goes_on_and_ends_once_with_the_text_of_its_chunks(
        acts in prop::collection::vec(act(), 0..80),
    ) {
        let (agent, _) = samples::launch(1);
        for (id, bubble) in bubbles(&told(Dialect::Message, &agent, &journal(&acts))) {
            let (text, complete, outcome) = bubble.end.expect("every message has an end");
            if outcome == "abandoned" {
                prop_assert_eq!(&text, "", "{} is void", id);
            } else {
                prop_assert_eq!(text, bubble.text, "{}", id);
            }
            prop_assert_eq!(complete, outcome.is_null());
        }
    }

    #[test]
    fn whoever_resumes_at_any_event_is_told_the_rest_and_nothing_else(
        acts in prop::collection::vec(act(), 0..40),
    ) {
        let (agent, _) = samples::launch(1);
        let events = journal(&acts);
        for dialect in [Dialect::Message, Dialect::Stream] {
            let whole = told(dialect, &agent, &events);
            for cursor in 0..=events.len() {
                let (known, rest) = events.split_at(cursor);
                let mut fold = DialectFold::new(dialect, agent.id, Detail::Plain);
                for event in known {
                    fold.event(event, &mut Silence);
                }
                let mut out = FrameWriter::default();
                for event in rest {
                    fold.event(event, &mut out);
                }
                let rest = lines(out);
                prop_assert_eq!(&rest[..], &whole[whole.len() - rest.len()..]);
                prop_assert!(rest.iter().all(|line| cursor < sequence(line)));
                prop_assert!(whole[..whole.len() - rest.len()].iter().all(|line| sequence(line) <= cursor));
            }
        }
    }

    #[test]
    fn the_text_of_a_stream_is_that_of_the_messages(acts in prop::collection::vec(act(), 0..80)) {
        let (agent, _) = samples::launch(1);
        let events = journal(&acts);
        let said = |lines: &[String], kind: &str, text: fn(&Value) -> &Value| -> String {
            let frames = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let frames = frames.filter(|frame| frame["type"] == kind);
            frames.map(|frame| text(&frame["payload"]).as_str().unwrap().to_owned()).collect()
        };
        let message = said(&told(Dialect::Message, &agent, &events), "message.chunk", |p| &p["content"]["text"]);
        let stream = said(&told(Dialect::Stream, &agent, &events), "agent:stream", |p| &p["text"]);
        prop_assert_eq!(message, stream);
    }
}

fn sequence(line: &str) -> usize {
    let frame: Value = serde_json::from_str(line).unwrap();
    frame["payload"]["sequence"].as_u64().unwrap() as usize
}

#[test]
fn a_message_of_many_chunks_and_one_of_none_have_one_start_and_one_end() {
    let (agent, _) = samples::launch(1);
    let words: Vec<_> = (0..3000).map(|n| format!("{n} ")).collect();
    let many: Vec<_> = words.iter().map(|word| Act::Text(0, word.clone())).collect();
    let acts = [many, vec![Act::End(0, 0, String::new()), Act::ToolInput(1), Act::End(1, 0, String::new())]];
    let lines = told(Dialect::Message, &agent, &journal(&acts.concat()));
    assert_eq!(lines.len(), 1 + 3000 + 1 + 2);
    let texts: Vec<_> = bubbles(&lines).into_values().map(|bubble| bubble.end.unwrap().0).collect();
    assert!(texts.contains(&words.concat()) && texts.contains(&String::new()), "one is whole, one is empty");
}
