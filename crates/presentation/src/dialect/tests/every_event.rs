//! The vocabularies that tell event by event, over every story.

use tokenrail_domain::{Agent, Event};

use crate::dialect::{Packed, agent, event_stream};
use crate::frames::{FrameWriter, payloads};
use crate::tests::journals::{STORIES, events, written};

fn frames(of: &Agent, events: &[Event]) -> String {
    let mut out = FrameWriter::default();
    for event in events {
        agent::frames(of.id, Packed::Event(event), false, &mut out);
    }
    let frames = out.into_bytes();
    let lines: Vec<_> = payloads(&frames).map(|json| String::from_utf8(json.to_vec()).unwrap()).collect();
    lines.join("\n")
}

fn blocks(of: &Agent, events: &[Event]) -> String {
    let mut out = Vec::new();
    for event in events {
        event_stream::block(of.id, Packed::Event(event), false, true, &mut out);
    }
    String::from_utf8(out).unwrap().trim_end().to_owned()
}

fn stories(told: fn(&Agent, &[Event]) -> String) -> String {
    let told = STORIES.map(|(name, story)| {
        let (agent, appends) = written(story);
        format!("# {name}\n{}", told(&agent, &events(&appends)))
    });
    told.join("\n\n")
}

#[test]
fn the_dialect_agent_tells_every_story() {
    insta::assert_snapshot!("agent_frames", stories(frames));
}

#[test]
fn an_event_stream_tells_every_story() {
    insta::assert_snapshot!("event_stream", stories(blocks));
}
