//! The vocabularies that write each event separately, with every story.

use tokenrail_domain::{Agent, Event};

use crate::fold::Fold as _;
use crate::frames::{FrameWriter, payloads};
use crate::tests::journals::{STORIES, events, written};
use crate::vocabularies::native::Detail;
use crate::vocabularies::native::dialects::agent::AgentFold;
use crate::vocabularies::native::events::EventFold;
use crate::vocabularies::native::transport::EventBlocks;

fn frames(of: &Agent, events: &[Event]) -> String {
    let mut out = FrameWriter::default();
    let mut fold = AgentFold::new(of.id, Detail::Plain);
    for event in events {
        fold.event(event, &mut out);
    }
    let frames = out.into_bytes();
    let lines: Vec<_> = payloads(&frames).map(|json| String::from_utf8(json.to_vec()).unwrap()).collect();
    lines.join("\n")
}

fn blocks(of: &Agent, events: &[Event]) -> String {
    let mut out = EventBlocks { named: true, ..EventBlocks::default() };
    let mut fold = EventFold::new(of.id, Detail::Plain);
    for event in events {
        fold.event(event, &mut out);
    }
    String::from_utf8(out.out.take().to_vec()).unwrap().trim_end().to_owned()
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
