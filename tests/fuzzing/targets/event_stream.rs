//! An agent's output is in the journal byte for byte, and an event stream contains the journal. Another decoder reads
//! one event for each entry, in order, and takes none of the agent's output for a field.

use std::collections::BTreeMap;

use actix_web::test::TestRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{AgentId, ContentBlock, Event, EventBody, MessageOrdinal, TurnNumber};
use tokenrail_ports::Line;

use super::said_messages::Spoken;
use super::sse_model;
use super::world::{self, HOST, World, lines_of};

#[derive(Deserialize)]
struct Told<'a> {
    id: String,
    #[serde(rename = "sequenceNumber")]
    sequence: u64,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
}

pub(crate) fn run(data: &[u8]) {
    world::with(async |world, _| {
        let agent = world.launch(data).await;
        let live = stream(&world, agent).await;
        world.ended(agent).await;
        let journal = world.journal(agent).await;
        check_journal(data, &journal);
        let again = stream(&world, agent).await;
        assert!(again.starts_with(&live), "the same bytes live and again");
        check_stream(&again, &journal);
    });
}

async fn stream(world: &World, agent: AgentId) -> Vec<u8> {
    let request = TestRequest::get().uri(&format!("/api/agents/{agent}/events?raw=true"));
    let request = request.insert_header(("accept", "text/event-stream")).insert_header(("host", HOST));
    let answer = world.call(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

fn check_journal(output: &[u8], journal: &[Event]) {
    for (index, event) in journal.iter().enumerate() {
        assert_eq!(event.sequence.0, index as u64 + 1, "no hole");
    }
    let kept = journal.iter().filter_map(|event| event.raw.as_deref());
    let kept: Vec<&[u8]> = kept.flat_map(lines).collect();
    let printed = lines_of(output);
    let printed = printed.iter().map(|line| match &line.line {
        Line::Whole(bytes) | Line::Cut(bytes) | Line::TooLong { head: bytes, .. } => &bytes[..],
    });
    let printed: Vec<&[u8]> = printed.flat_map(lines).collect();
    assert_eq!(kept, printed, "every line is kept");
    check_messages(journal);
}

/// The lines that are not empty.
fn lines(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    raw.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Each message ends once, with the text of its deltas. Each turn ends once, with no open message.
fn check_messages(journal: &[Event]) {
    let mut open: BTreeMap<(TurnNumber, MessageOrdinal), Spoken> = BTreeMap::new();
    for event in journal {
        if let Some(message) = event.body.delta_of() {
            open.entry((event.turn, message)).or_default().hear(&event.body);
        }
        match &event.body {
            EventBody::Message(complete) => {
                let spoken = open.remove(&(event.turn, complete.message));
                assert_eq!(spoken.is_some(), complete.first_sequence.is_some());
                if let Some(spoken) = spoken {
                    for text in spoken.text.into_values() {
                        assert!(complete.blocks.contains(&ContentBlock::Text(text)), "{complete:?}");
                    }
                }
            }
            EventBody::Abandoned { message } => drop(open.remove(&(event.turn, *message))),
            EventBody::TurnResult(_) => assert!(open.is_empty(), "{open:?} is open at the end of its turn"),
            _ => {}
        }
    }
    let last = journal.last().map(|event| &event.body);
    assert!(matches!(last, Some(EventBody::TurnResult(_))), "{last:?}");
}

fn check_stream(stream: &[u8], journal: &[Event]) {
    let told = sse_model::read(stream);
    assert_eq!(told.retry_ms, Some(1000));
    assert_eq!(told.events.len(), journal.len(), "{}", String::from_utf8_lossy(stream));
    for (told, event) in told.events.iter().zip(journal) {
        let number = event.sequence.0;
        assert_eq!(told.id, Some(number.to_string()));
        assert!(!told.name.contains(['\n', '\r', '\0']));
        let message: Told<'_> = serde_json::from_slice(&told.data).expect("the data are JSON");
        assert_eq!(message.sequence, number);
        assert!(!message.id.is_empty() && message.kind.is_some());
        assert_eq!(message.raw.is_some(), event.raw.is_some(), "{}", String::from_utf8_lossy(&told.data));
    }
}
