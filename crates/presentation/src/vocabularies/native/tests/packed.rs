//! Packed deltas: the same events in fewer frames.

use proptest::prelude::*;
use serde_json::Value;
use tokenrail_application::Rendering;
use tokenrail_domain::{
    AgentId, Event, EventBody, MessageOrdinal, Part, Sequence, Timestamp, TurnNumber, message_of,
};
use tokenrail_ports::testing::samples::{self, text_delta};

use super::folds::{Act, act, journal};
use crate::fold::{Fold as _, Silence};
use crate::frames::{self, FrameWriter, payloads};
use crate::json::JsonList;
use crate::tests::journals::{STORIES, events, written};
use crate::vocabularies::native::dialects::agent::AgentFold;
use crate::vocabularies::native::events::EventFold;
use crate::vocabularies::native::joined::Joined;
use crate::vocabularies::native::packed::{PACKED_EVENTS, PACKED_TEXT_BYTES, Packed, packed};
use crate::vocabularies::native::testing::packed_items;
use crate::vocabularies::native::writing::{blocks, form, frames as rendered};
use crate::vocabularies::native::{Detail, Dialect, DialectFold};

/// Packed frames of the dialect `agent`.
fn render(agent: AgentId, events: &[Event]) -> Rendering {
    rendered(&mut AgentFold::new(agent, Detail::Packed), events)
}

/// Packed blocks of the native event stream.
fn render_blocks(agent: AgentId, named: bool, events: &[Event]) -> Rendering {
    blocks(&mut EventFold::new(agent, Detail::Packed), Detail::Packed, named, events)
}

fn values(frames: &[u8]) -> Vec<Value> {
    payloads(frames).map(|json| serde_json::from_slice(json).unwrap()).collect()
}

#[test]
fn followers_that_get_the_same_bytes_share_them() {
    let forms = |dialect| {
        let fold = DialectFold::new(dialect, samples::launch(1).0.id, Detail::Raw);
        (form(&fold, false), form(&fold, true))
    };
    assert_eq!(forms(Dialect::Agent), (0, 0), "raw lines are never packed");
    assert_eq!([Dialect::Message, Dialect::Stream].map(forms), [(0, 1); 2]);
}

/// The frames for a client that skips the first `skip` events, taken from the shared rendering if possible.
fn after(rendering: &Rendering, agent: AgentId, events: &[Event], skip: usize) -> Vec<Value> {
    let shared = rendering.from(skip);
    values(&shared.unwrap_or_else(|| render(agent, &events[skip..]).bytes))
}

/// The events of a packed frame, as a client reads them.
fn unpacked(agent: AgentId, deltas: &Value) -> Vec<Event> {
    let texts = deltas["texts"].as_array().unwrap();
    let number = |name: &str| deltas[name].as_u64().unwrap();
    assert_eq!(number("to") - number("from") + 1, texts.len() as u64, "{deltas}");
    let (turn, message) = message_of(agent, deltas["messageId"].as_str().unwrap().parse().unwrap()).unwrap();
    let part = Part(u32::try_from(number("part")).unwrap());
    let created: jiff::Timestamp = deltas["createdAt"].as_str().unwrap().parse().unwrap();
    let mut at = Timestamp(created.as_millisecond());
    let text = |text: &Value| text.as_str().unwrap().to_owned();
    let event = |(index, said): (usize, &Value)| {
        at.0 += deltas["elapsedMs"].get(index).map_or(0, |ms| ms.as_i64().unwrap());
        let body = match deltas["eventType"].as_str().unwrap() {
            "content_delta" => EventBody::TextDelta { message, part, text: text(said) },
            "thinking_delta" => EventBody::ReasoningDelta { message, part, text: text(said) },
            "tool_input_delta" => EventBody::ToolInputDelta {
                message,
                part,
                call: text(&deltas["toolCallId"]),
                tool: deltas["toolName"].as_str().filter(|_| index == 0).map(str::to_owned),
                fragment: text(said),
            },
            other => panic!("{other}"),
        };
        Event { sequence: Sequence(number("from") + index as u64), at, turn, body, raw: None }
    };
    texts.iter().enumerate().map(event).collect()
}

/// Journals in which some events have the same time.
fn journals() -> impl Strategy<Value = Vec<Event>> {
    (prop::collection::vec(act(), 0..40), 1..5_i64).prop_map(|(acts, same)| {
        let mut events = journal(&acts);
        for event in &mut events {
            event.at.0 -= event.sequence.0 as i64 % same;
        }
        events
    })
}

proptest! {
    #[test]
    fn a_client_with_any_cursor_gets_exactly_the_events_after_it(events in journals()) {
        let id = samples::launch(1).0.id;
        let rendering = render(id, &events);
        prop_assert_eq!(rendering.ends.len(), events.len());
        for cursor in 0..events.len() {
            let mut rest = events[cursor..].iter();
            let mut told = after(&rendering, id, &events, cursor).into_iter();
            while let Some(event) = rest.next() {
                let frame = told.next().unwrap();
                if frame["type"] == "agent:deltas" {
                    let run = unpacked(id, &frame["payload"]);
                    prop_assert_eq!(&run[0], event);
                    for delta in &run[1..] {
                        prop_assert_eq!(Some(delta), rest.next());
                    }
                    prop_assert_eq!(&frame["timestamp"], run.last().unwrap().at.0);
                } else {
                    let mut out = FrameWriter::default();
                    AgentFold::new(id, Detail::Plain).event(event, &mut out);
                    let alone = values(&out.into_bytes());
                    prop_assert!(!event.body.is_delta());
                    prop_assert_eq!(&frame, &alone[0]);
                    prop_assert!(alone[1..].iter().all(|frame| told.next().as_ref() == Some(frame)));
                }
            }
            prop_assert!(told.next().is_none());
        }
    }

    #[test]
    fn who_comes_back_in_the_middle_of_joined_text_gets_the_rest_of_it(
        acts in prop::collection::vec(act(), 0..30),
    ) {
        let agent = samples::launch(1).0.id;
        let events = journal(&acts);
        for dialect in [Dialect::Message, Dialect::Stream] {
            let told = |packed, skip: usize| {
                let mut fold = DialectFold::new(dialect, agent, Detail::Plain);
                events[..skip].iter().for_each(|event| fold.event(event, &mut Silence));
                let mut out = Joined::new(packed);
                out.take(&mut fold, &events[skip..]);
                values(&out.into_bytes())
            };
            let mut whole = Joined::new(true);
            let ends = whole.take(&mut DialectFold::new(dialect, agent, Detail::Plain), &events);
            let whole = Rendering { bytes: whole.into_bytes(), ends };
            for skip in 0..events.len() {
                let packed = whole.from(skip).map_or_else(|| told(true, skip), |bytes| values(&bytes));
                prop_assert!(packed.windows(2).all(|two| !is_text(&two[0]) || two[0] != two[1]));
                prop_assert_eq!(joined(&packed), joined(&told(false, skip)), "{:?} after {}", dialect, skip);
            }
        }
    }
}

fn is_text(frame: &Value) -> bool {
    matches!(frame["type"].as_str().unwrap(), "message.chunk" | "agent:stream")
}

/// Joins consecutive texts of the same message.
fn joined(frames: &[Value]) -> Vec<Value> {
    let text = |frame: &Value| -> String {
        let payload = &frame["payload"];
        payload["text"].as_str().or(payload["content"]["text"].as_str()).unwrap().to_owned()
    };
    let mut out: Vec<Value> = Vec::new();
    for frame in frames {
        let mut frame = frame.clone();
        if let Some(last) = out.last().filter(|last| is_text(last) && is_text(&frame))
            && last["payload"]["messageId"] == frame["payload"]["messageId"]
        {
            let all = text(last) + &text(&frame);
            out.pop();
            if frame["type"] == "agent:stream" {
                frame["payload"]["text"] = all.into();
            } else {
                frame["payload"]["content"]["text"] = all.into();
            }
        }
        out.push(frame);
    }
    out
}

fn deltas(texts: impl IntoIterator<Item = String>) -> Vec<Event> {
    let event = |(index, text): (usize, String)| Event {
        sequence: Sequence(index as u64 + 1),
        at: samples::LAUNCHED_AT,
        turn: TurnNumber::FIRST,
        body: text_delta(0, &text),
        raw: None,
    };
    texts.into_iter().enumerate().map(event).collect()
}

fn lengths(events: &[Event]) -> Vec<usize> {
    packed(events).map(Packed::len).collect()
}

#[test]
fn a_packed_frame_has_a_bound_in_events_and_in_bytes() {
    let short = deltas((0..1025).map(|_| "four".to_owned()));
    assert_eq!(lengths(&short), [PACKED_EVENTS, PACKED_EVENTS, 1]);
    let half = "x".repeat(PACKED_TEXT_BYTES / 2);
    let long = deltas([half.clone(), half.clone(), half, "x".repeat(2 * PACKED_TEXT_BYTES), "x".into()]);
    assert_eq!(lengths(&long), [2, 1, 1, 1], "one event is never cut");
}

#[test]
fn a_token_of_four_characters_takes_at_most_forty_bytes() {
    let id = samples::launch(1).0.id;
    let flood = deltas((0..512).map(|n| format!("{n:>4}")));
    let written = [
        ("frames", render(id, &flood)),
        ("blocks", render_blocks(id, true, &flood)),
        ("blocks without names", render_blocks(id, false, &flood)),
    ];
    for (form, rendering) in written {
        let bytes = rendering.bytes.len();
        assert!(bytes <= 8 * flood.len(), "{form}: {bytes} bytes");
    }
}

#[test]
fn another_kind_part_call_or_message_is_another_frame() {
    let (message, part) = (MessageOrdinal(0), Part(0));
    let text = |part| EventBody::TextDelta { message, part, text: "a".into() };
    let reasoning = EventBody::ReasoningDelta { message, part, text: "a".into() };
    let input = |call: &str, tool: Option<&str>| EventBody::ToolInputDelta {
        message,
        part,
        call: call.into(),
        tool: tool.map(Into::into),
        fragment: "{".into(),
    };
    let bodies = [
        vec![text(part), text(part), text(Part(1))],
        vec![reasoning.clone(), reasoning],
        vec![input("c1", Some("Bash")), input("c1", None), input("c1", Some("Bash")), input("c2", None)],
        vec![text_delta(1, "a")],
    ];
    let mut events = deltas((0..10).map(|_| String::new()));
    events.iter_mut().zip(bodies.concat()).for_each(|(event, body)| event.body = body);
    assert_eq!(lengths(&events), [2, 1, 2, 2, 1, 1, 1]);
    events[1].sequence = Sequence(7);
    assert_eq!(lengths(&events)[..2], [1, 1], "a hole in a page of complete messages ends it");
}

#[test]
fn packed_frames_and_blocks_tell_every_story() {
    let told = STORIES.map(|(name, story)| {
        let (agent, appends) = written(story);
        let events = events(&appends);
        let frames = render(agent.id, &events).bytes;
        let lines = payloads(&frames).map(|json| String::from_utf8(json.to_vec()).unwrap());
        let lines: Vec<_> = lines.filter(|line| line.contains("agent:deltas")).collect();
        let blocks = render_blocks(agent.id, true, &events).bytes;
        let blocks = String::from_utf8(blocks.to_vec()).unwrap();
        let blocks: Vec<_> = blocks.split("\n\n").filter(|block| block.contains("event: deltas")).collect();
        format!("# {name}\n{}\n\n{}", lines.join("\n"), blocks.join("\n\n"))
    });
    insta::assert_snapshot!("packed", told.join("\n\n"));
}

#[test]
fn items_of_a_page_are_the_payloads_of_frames() {
    let (agent, appends) = written(STORIES[0].1);
    let events = events(&appends);
    let items = packed_items(agent.id, &events);
    let items: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
    let mut list = JsonList::default();
    Detail::Packed.feed(&mut EventFold::new(agent.id, Detail::Packed), &events, &mut list);
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&list.into_list()).unwrap(), items);
    let frames = values(&render(agent.id, &events).bytes);
    let payloads = frames.iter().filter_map(|frame| match frame["type"].as_str().unwrap() {
        "agent:deltas" => Some(&frame["payload"]),
        "agent:message" => Some(&frame["payload"]["message"]),
        _ => None,
    });
    assert!(payloads.eq(&items));
}

#[test]
fn a_batch_of_frames_holds_packed_ones_too() {
    let id = samples::launch(1).0.id;
    let mut batch = FrameWriter::default();
    batch.batch(&[render(id, &deltas(["a".into(), "b".into()])).bytes, frames::json(&"other")]);
    let batch = values(&batch.into_bytes());
    assert_eq!(batch[0]["messages"][0]["payload"]["texts"], serde_json::json!(["a", "b"]));
    assert_eq!(batch[0]["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn text_of_one_message_is_joined_up_to_a_bound() {
    let agent = samples::launch(1).0.id;
    let acts: Vec<_> = (0..3).map(|_| Act::Text(0, "x".repeat(PACKED_TEXT_BYTES / 2))).collect();
    let events = journal(&acts);
    let mut out = Joined::new(true);
    out.take(&mut DialectFold::new(Dialect::Stream, agent, Detail::Plain), &events);
    let frames = values(&out.into_bytes());
    let texts = frames.iter().filter(|frame| is_text(frame));
    let told: Vec<_> = texts
        .map(|frame| {
            (frame["payload"]["sequence"].as_u64().unwrap(), frame["payload"]["text"].as_str().unwrap().len())
        })
        .collect();
    assert_eq!(told, [(2, PACKED_TEXT_BYTES), (3, PACKED_TEXT_BYTES / 2)]);
}
