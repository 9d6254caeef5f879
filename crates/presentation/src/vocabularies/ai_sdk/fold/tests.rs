mod checker;
mod stories;

use tokenrail_domain::{AgentId, Event, EventBody, TurnOutcome};
use tokenrail_ports::testing::samples;

use super::super::writer::ChunkWriter;
use super::{AiSdkFold, SdkVersion};
use crate::fold::Fold as _;
use checker::Client;
use stories::Story;

const VERSIONS: [SdkVersion; 6] = SdkVersion::ALL;

/// The chunks of a turn from number `from` on.
fn chunks(agent: AgentId, events: &[Event], version: SdkVersion, from: u64) -> Vec<String> {
    let mut out = ChunkWriter::lines(from);
    let mut fold = AiSdkFold::new(agent, events[0].turn, version);
    for event in events {
        fold.event(event, &mut out);
    }
    let bytes = out.take();
    let text = std::str::from_utf8(&bytes).unwrap();
    assert!(text.is_empty() || text.ends_with("\n\n"));
    let lines = text.split("\n\n").filter(|line| !line.is_empty());
    lines.map(|line| line.strip_prefix("data: ").unwrap().to_owned()).collect()
}

/// The chunks for a client without a version, and the differences for each version.
fn rendering(story: &Story) -> String {
    let all = |version| chunks(story.agent, &story.events, version, 0);
    let any = all(SdkVersion::Any);
    let mut text = any.join("\n");
    for version in VERSIONS.into_iter().skip(1) {
        let own = all(version);
        let number = version.as_str().unwrap();
        for line in any.iter().filter(|line| !own.contains(line)) {
            text.extend(["\n- v", number, ": ", line]);
        }
        for line in own.iter().filter(|line| !any.contains(line)) {
            text.extend(["\n+ v", number, ": ", line]);
        }
    }
    text
}

macro_rules! snapshots {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), rendering(&stories::$name()));
        })*
    };
}

snapshots! {
    plain_text
    thinking_and_tools
    parallel_tools
    a_sub_agent
    a_retry_after_an_abandoned_message
    an_error
    a_cancel
    a_crash
    no_partial_messages
    a_result_alone
    a_result_that_nobody_knows
    every_kind_of_event
    questions
    an_id_used_again_after_its_result
}

#[test]
fn a_client_can_follow_every_story() {
    for story in stories::all() {
        for version in VERSIONS {
            Client::default().reads(&chunks(story.agent, &story.events, version, 0), version);
        }
    }
}

#[test]
fn who_comes_back_gets_the_rest_from_any_chunk_on() {
    for story in stories::all() {
        for version in VERSIONS {
            let all = chunks(story.agent, &story.events, version, 0);
            for from in 0..=all.len() {
                assert_eq!(chunks(story.agent, &story.events, version, from as u64), all[from..]);
            }
        }
    }
}

/// Events in any order: worse than any agent.
#[test]
fn a_client_can_follow_whatever_an_agent_does() {
    let bodies: Vec<EventBody> =
        stories::all().into_iter().flat_map(|story| story.events).map(|event| event.body).collect();
    let is_end = |body: &EventBody| matches!(body, EventBody::TurnResult(_));
    let middle: Vec<&EventBody> = bodies.iter().filter(|body| !is_end(body)).collect();
    let template = stories::plain_text();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..500 {
        let mut chosen: Vec<EventBody> = (0..next(60)).map(|_| middle[next(middle.len())].clone()).collect();
        let outcome = TurnOutcome::ALL[next(TurnOutcome::ALL.len())];
        chosen.push(EventBody::TurnResult(Box::new(samples::result(outcome))));
        let body = |body| Event { body, ..template.events[0].clone() };
        let events: Vec<Event> = chosen.into_iter().map(body).collect();
        for version in VERSIONS {
            Client::default().reads(&chunks(template.agent, &events, version, 0), version);
        }
    }
}

#[test]
fn a_prerelease_has_what_the_step_before_has() {
    for (name, expected) in [
        ("7", SdkVersion::V7),
        ("7.0.0-beta.1", SdkVersion::V7),
        ("7.0.70-canary.2", SdkVersion::V7),
        ("7.0.70", SdkVersion::V7Reset),
        ("7.0.71-beta.1", SdkVersion::V7Reset),
        ("7.0.149-beta.1", SdkVersion::V7Reset),
        ("7.0.149", SdkVersion::V7Interrupted),
        ("7.0.150-beta.1", SdkVersion::V7Interrupted),
        ("7.1.0-beta.1", SdkVersion::V7Interrupted),
    ] {
        assert_eq!(SdkVersion::from_name(Some(name)).ok(), Some(expected), "{name}");
    }
}
