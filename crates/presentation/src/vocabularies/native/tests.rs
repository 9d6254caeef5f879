mod every_event;
mod folds;
mod packed;

use std::sync::Arc;

use tokenrail_application::AfterLastTurn;
use tokenrail_domain::{Event, Sequence, TurnOutcome};
use tokenrail_ports::testing::samples::{self, Scribe};

use super::Detail;
use super::dialects::agent::AgentFold;
use super::events::EventFold;
use super::transport::EventBlocks;
use crate::fold::Fold as _;
use crate::frames::{FrameWriter, payloads};

/// A turn with an event of every kind, with its optional fields both present and absent.
fn events() -> (tokenrail_domain::AgentId, Vec<Event>) {
    let (launched, turn) = samples::launch(7);
    let mut scribe = Scribe::new(&launched);
    let failed = tokenrail_domain::TurnResult {
        error: Some(samples::error()),
        origin: Some("background".into()),
        ..samples::result(TurnOutcome::Failed)
    };
    let bare = tokenrail_domain::TurnResult {
        num_turns: None,
        cost_usd: None,
        usage: None,
        ..samples::result(TurnOutcome::Completed)
    };
    let mut appends = vec![scribe.start(&turn), scribe.say(samples::every_body()), scribe.end_with(failed)];
    appends.push(scribe.end_with(bare));
    (launched.id, appends.iter().flat_map(|append| append.events.iter().cloned()).collect())
}

fn frames(raw: bool) -> String {
    let (id, events) = events();
    let mut out = FrameWriter::default();
    let mut fold = AgentFold::new(id, Detail::of(raw, false));
    for event in &events {
        fold.event(event, &mut out);
    }
    let frames = out.into_bytes();
    let lines: Vec<_> = payloads(&frames).map(|json| String::from_utf8(json.to_vec()).unwrap()).collect();
    for line in &lines {
        let frame: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(frame["payload"]["agentId"].is_string() && frame["payload"]["sequence"].is_u64(), "{line}");
    }
    lines.join("\n")
}

fn blocks(events: &[Event]) -> String {
    let (id, _) = self::events();
    let mut out = EventBlocks { named: true, ..EventBlocks::default() };
    let mut fold = EventFold::new(id, Detail::Plain);
    for event in events {
        fold.event(event, &mut out);
    }
    String::from_utf8(out.out.take().to_vec()).unwrap()
}

#[test]
fn the_dialect_agent_has_frames_for_every_kind_of_event() {
    insta::assert_snapshot!("agent_frames", frames(false));
}

#[test]
fn raw_lines_are_there_for_those_who_ask() {
    insta::assert_snapshot!("agent_frames_raw", frames(true));
}

#[test]
fn an_event_stream_has_a_block_for_every_kind_of_event() {
    insta::assert_snapshot!("event_stream", blocks(&events().1));
}

#[test]
fn nothing_in_an_event_can_break_the_lines_of_a_stream() {
    let (_, mut events) = events();
    let notice = |subtype: &str, data: &str| {
        tokenrail_domain::EventBody::Notice(Box::new(tokenrail_domain::Notice {
            subtype: subtype.into(),
            data: samples::json(data),
        }))
    };
    events.truncate(1);
    events[0].body = notice("a\nid: 99\r\n\nevent: b", "{\n\"x\":\r\n1}");
    events[0].sequence = Sequence(1);
    let text = blocks(&events);
    let lines: Vec<_> = text.split('\n').collect();
    assert_eq!(lines.len(), 5, "{text:?}");
    assert!(!text.contains('\r'));
    assert_eq!(lines[..2], ["id: 1", "event: aid: 99event: b"]);
    let message: serde_json::Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(message["metadata"]["data"]["x"], 1);
}

#[tokio::test]
async fn a_batch_is_written_once_and_cut_where_an_event_ends() {
    use super::EventWriting;
    use super::writing::frames;
    use crate::fold::written;
    use tokenrail_application::Next;

    let harness = crate::tests::harness::Harness::new();
    let id = harness.launch("say a b").await;
    // A follower keeps the newest batches in memory.
    let _keeper = harness.service.follow(id.parse().unwrap(), None, AfterLastTurn::Wait).await.unwrap();
    harness.ended(&id).await;
    let follow = async |since| {
        let (_, mut follower) = harness
            .service
            .follow(id.parse().unwrap(), Some(Sequence(since)), AfterLastTurn::End)
            .await
            .unwrap();
        let mut pages = Vec::new();
        while let Next::Page(page) = follower.next().await.unwrap() {
            pages.push(page);
        }
        pages
    };
    let (whole, rest) = (follow(0).await, follow(2).await);
    let (last, same) = (whole.last().unwrap(), rest.last().unwrap());
    assert!(Arc::ptr_eq(&last.batch, &same.batch), "readers share what is in memory");
    for is_stream in [false, true] {
        for detail in [Detail::Plain, Detail::Raw] {
            let agent = id.parse().unwrap();
            let write = |page: &tokenrail_application::Page| {
                if is_stream {
                    return EventWriting::new(agent, detail, true).of(page);
                }
                written(&mut AgentFold::new(agent, detail), 0, page, frames)
            };
            let all = |pages: &[tokenrail_application::Page]| -> Vec<u8> {
                let written = |page: &tokenrail_application::Page| write(page).to_vec();
                pages.iter().flat_map(written).collect()
            };
            let (whole, rest) = (all(&whole), all(&rest));
            assert!(!rest.is_empty() && rest.len() < whole.len());
            assert!(whole.ends_with(&rest), "a later cursor gives the end of the same bytes");
            let end = |page| write(page).as_ptr_range().end;
            assert_eq!(end(last), end(same), "written once");
        }
    }
}
