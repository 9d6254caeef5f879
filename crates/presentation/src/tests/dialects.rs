//! The dialects over a real socket: from any cursor, in the middle of a message, with options, and client requests.

use std::time::Duration;

use actix_http::ws::OpCode;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use tokenrail_domain::{Agent, AgentId};

use super::client::{Client, Served, serve};
use super::harness::Harness;
use super::journals::{STORIES, keep, written, written_in_turns};

/// Batches of few events, so that turns begin and end inside them, and frequent heartbeats with the current head.
pub(super) fn small_batches() -> Harness {
    Harness::with(|config, limits| {
        config.heartbeat = Duration::from_millis(10);
        limits.reading.history_events = 4;
        limits.reading.page_events = 3;
    })
}

/// An agent with a turn for each story. The last turn is still running.
pub(super) async fn all_stories(harness: &Harness) -> (AgentId, usize) {
    let (agent, appends) = written_in_turns(1, &STORIES.map(|(_, story)| story));
    let head = appends.iter().map(|append| append.events.len()).sum();
    keep(&harness.store, &agent, appends).await;
    (agent.id, head)
}

/// The frames from a cursor on, up to the first heartbeat that has reached the head.
async fn told(client: &mut Client, id: AgentId, dialect: &str, since: Option<usize>) -> Vec<Value> {
    let wish = json!({"agentId": id.to_string(), "dialect": dialect, "since": since});
    client.say("subscribe", wish).await;
    let [subscribed] = next(client).await;
    assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
    let head = subscribed["payload"]["head"].clone();
    let mut frames = Vec::new();
    loop {
        let frame = client.frame().await;
        if frame["type"] != "heartbeat" {
            frames.push(frame);
        } else if frame["payload"]["heads"][id.to_string()] == head {
            return frames;
        }
    }
}

/// Serves an agent with all stories. Returns its id and the number of its last event too.
async fn serve_stories() -> (Harness, Served, AgentId, usize) {
    let harness = small_batches();
    let served = serve(&harness);
    let (id, head) = all_stories(&harness).await;
    (harness, served, id, head)
}

/// Serves an agent with the first story.
async fn serve_story() -> (Harness, Served, Agent) {
    let harness = Harness::new();
    let served = serve(&harness);
    let (agent, appends) = written(STORIES[0].1);
    keep(&harness.store, &agent, appends).await;
    (harness, served, agent)
}

#[actix_web::test]
async fn from_any_cursor_a_dialect_gives_the_rest_of_the_same_frames() {
    let (_harness, served, id, head) = serve_stories().await;
    let (mut client, _) = Client::connect(&served, "").await;
    for dialect in ["message", "stream"] {
        let whole = told(&mut client, id, dialect, Some(0)).await;
        assert!(head < whole.len() + 60, "{} frames", whole.len());
        for since in 1..=head {
            let rest = told(&mut client, id, dialect, Some(since)).await;
            let later = |frame: &&Value| since < frame["payload"]["sequence"].as_u64().unwrap() as usize;
            let expected: Vec<_> = whole.iter().filter(later).cloned().collect();
            assert_eq!(rest, expected, "{dialect} since {since}");
        }
    }
    served.handle.stop(false).await;
}

/// The next frames that are not heartbeats.
async fn next<const N: usize>(client: &mut Client) -> [Value; N] {
    let mut frames = Vec::new();
    while frames.len() < N {
        let frame = client.frame().await;
        if frame["type"] != "heartbeat" {
            frames.push(frame);
        }
    }
    frames.try_into().unwrap()
}

fn text(frame: &Value) -> (&str, &str) {
    (frame["type"].as_str().unwrap(), frame["payload"]["content"]["text"].as_str().unwrap_or_default())
}

#[actix_web::test]
async fn who_joins_in_the_middle_of_messages_is_told_what_they_have_said_so_far() {
    let (_harness, served, id, head) = serve_stories().await;
    let (mut client, _) = Client::connect(&served, "?dialect=message").await;
    let whole = told(&mut client, id, "message", Some(0)).await;
    client.say("subscribe", json!({"agentId": id.to_string()})).await;
    let [subscribed, first, said, second, also] = next(&mut client).await;
    assert_eq!(subscribed["payload"]["head"], head);
    let start = |frame: &Value| whole.contains(frame);
    assert!(start(&first) && start(&second), "their starts are the same frames as ever");
    assert_eq!((text(&first).0, text(&said)), ("message.start", ("message.chunk", "Hello")));
    assert_eq!((text(&second).0, text(&also)), ("message.start", ("message.chunk", "you")));
    assert_eq!(said["payload"]["sequence"], head);
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn the_status_of_a_message_is_told_to_whoever_names_it() {
    let (harness, served, id, head) = serve_stories().await;
    let (other, appends) = written_in_turns(2, &[STORIES[0].1]);
    keep(&harness.store, &other, appends).await;
    let (mut client, _) = Client::connect(&served, "").await;
    let frames = told(&mut client, id, "message", Some(0)).await;
    let starts: Vec<_> = frames.iter().filter(|frame| frame["type"] == "message.start").collect();
    let mut states = Vec::new();
    for start in starts {
        let message = &start["payload"]["messageId"];
        client.say("message.status", json!({"messageId": message})).await;
        let [answer] = next(&mut client).await;
        let payload = &answer["payload"];
        assert_eq!((&answer["type"], &payload["messageId"]), (&json!("message.status"), message));
        assert_eq!(payload["agentId"], id.to_string());
        let state = payload["state"].as_str().unwrap().to_owned();
        let end =
            frames.iter().find(|it| it["type"] == "message.end" && it["payload"]["messageId"] == *message);
        match end {
            Some(end) => {
                assert_eq!(payload["content"], end["payload"]["content"]);
                assert_eq!(payload["sequence"], end["payload"]["sequence"]);
            }
            None => {
                assert_eq!((&state[..], payload["content"]["type"].as_str()), ("streaming", Some("text")));
            }
        }
        states.push(state);
    }
    assert!(states.len() > 12, "{states:?}");
    for state in ["streaming", "complete", "failed", "cancelled", "interrupted"] {
        assert!(states.iter().any(|it| it == state), "{state} in {states:?}");
    }
    let last = states.len() - 2;
    assert_eq!(states[last..], ["streaming", "streaming"]);
    assert_eq!(head, frames.last().unwrap()["payload"]["sequence"]);

    // A message of an agent that this connection does not follow.
    let (mut client, _) = Client::connect(&served, "").await;
    let theirs = told(&mut client, other.id, "message", Some(0)).await;
    client.say("unsubscribe", json!({"agentId": other.id.to_string()})).await;
    client.say("message.status", json!({"messageId": theirs[1]["payload"]["messageId"]})).await;
    let [_, answer] = next(&mut client).await;
    assert_eq!(
        (&answer["payload"]["state"], &answer["payload"]["content"]["text"]),
        (&json!("complete"), &json!("Hello 🦀"))
    );
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn a_frame_that_only_the_server_sends_is_answered_with_what_to_do() {
    let (_harness, served, agent) = serve_story().await;
    let (mut client, _) = Client::connect(&served, "?dialect=message").await;
    let id = agent.id.to_string();
    let unknown = "0195bd2f-0a00-7000-8000-000000000000";
    let cases = [
        ("message.new", json!({}), "validation_failed", "POST /api/agents/{agentId}/messages"),
        ("message.start", json!({}), "validation_failed", "POST /api/agents/{agentId}/messages"),
        (
            "message.chunk",
            json!({"messageId": unknown, "content": {}}),
            "validation_failed",
            "POST /api/agents/{agentId}/messages",
        ),
        (
            "message.end",
            json!({"messageId": unknown}),
            "validation_failed",
            "POST /api/agents/{agentId}/messages",
        ),
        ("agent:cancel", json!({}), "validation_failed", "POST /api/agents/{agentId}/cancel"),
        ("message.update", json!({}), "validation_failed", "message.status"),
        ("message.status", json!({}), "validation_failed", "/messageId: must be present"),
        ("message.status", json!({"messageId": 7}), "validation_failed", "/messageId: must be a string"),
        ("message.status", json!({"messageId": "x"}), "not_found", "no such message"),
        ("message.status", json!({"messageId": unknown}), "not_found", "no such message"),
        ("message.status", json!({"messageId": id}), "not_found", "no such message"),
        ("message.status", json!({"messageId": unknown, "agentId": id}), "not_found", "no such message"),
        ("message.status", json!({"messageId": unknown, "agentId": "x"}), "not_found", "no such agent"),
    ];
    for (kind, payload, code, words) in cases {
        client.say(kind, payload.clone()).await;
        let frame = client.frame().await;
        assert_eq!(
            (&frame["type"], &frame["payload"]["code"]),
            (&json!("error"), &json!(code)),
            "{kind} {payload}"
        );
        let message = frame["payload"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message:?} for {kind} {payload}");
    }
    client
        .send(OpCode::Text, br#"{"type":"message.status","payload":{"messageId":"x","messageId":"x"}}"#)
        .await;
    assert_eq!(client.frame().await["payload"]["code"], "malformed_json");
    client.say("ping", json!({})).await;
    assert_eq!(client.frame().await["type"], "pong", "and the connection stays open");
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn text_can_be_had_in_measure_and_in_order_with_the_rest() {
    let (_harness, served, id, _) = serve_stories().await;
    let (mut client, _) = Client::connect(&served, "?dialect=stream").await;
    let whole = told(&mut client, id, "stream", Some(0)).await;
    let (mut client, _) = Client::connect(&served, "?dialect=stream&throttle=1&throttleBytes=16").await;
    let measured = told(&mut client, id, "stream", Some(0)).await;
    assert!(measured.len() < whole.len(), "{} frames for {}", measured.len(), whole.len());
    assert_eq!(joined(&measured), joined(&whole));
    for frame in measured.iter().filter(|frame| frame["type"] == "agent:stream") {
        assert!(frame["payload"]["text"].as_str().unwrap().len() <= 16, "{frame}");
    }
    served.handle.stop(false).await;
}

/// Joins consecutive texts of each message, and removes `more`.
fn joined(frames: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for frame in frames {
        let mut frame = frame.clone();
        frame["payload"].as_object_mut().unwrap().remove("more");
        match joined.last_mut() {
            Some(last)
                if frame["type"] == "agent:stream"
                    && last["type"] == "agent:stream"
                    && last["payload"]["messageId"] == frame["payload"]["messageId"] =>
            {
                let text = |frame: &Value| frame["payload"]["text"].as_str().unwrap().to_owned();
                frame["payload"]["text"] = (text(last) + &text(&frame)).into();
                *last = frame;
            }
            _ => joined.push(frame),
        }
    }
    joined
}

#[actix_web::test]
async fn options_have_defaults_and_bounds() {
    let (harness, served, agent) = serve_story().await;
    for query in ["?batch", "?batch=", "?batch=true", "?batch=1000"] {
        let (mut client, _) = Client::connect(&served, &format!("{query}&throttle&dialect=stream")).await;
        client.say("subscribe", json!({"agentId": agent.id.to_string(), "since": 0})).await;
        let batch = client.frame().await;
        assert_eq!(batch["type"], "batch", "{query}");
        assert_eq!(batch["messages"][0]["type"], "subscribed");
    }
    for query in [
        "batch=0",
        "batch=1001",
        "batch=x",
        "throttle=0",
        "throttle=-1",
        "throttleBytes=15",
        "throttleBytes=1048577",
        "throttleBytes=",
    ] {
        let answer = harness.get(&format!("/ws?{query}")).await;
        assert_eq!(answer.problem(), "validation_failed", "{query}");
        let name = query.split('=').next().unwrap();
        assert_eq!(answer.json()["errors"][0]["parameter"], name);
    }
    served.handle.stop(false).await;
}

#[actix_web::test]
async fn an_unknown_dialect_is_refused_by_name_wherever_it_is_asked_for() {
    let (harness, served, agent) = serve_story().await;
    let events = format!("/api/agents/{}/events?dialect", agent.id);
    let stream =
        TestRequest::get().uri(&format!("{events}=morse")).insert_header(("accept", "text/event-stream"));
    let messages = harness.get(&format!("/api/agents/{}/messages?dialect=morse", agent.id)).await;
    for answer in [harness.get(&format!("{events}=morse")).await, harness.call(stream).await, messages] {
        assert_eq!(answer.problem(), "dialect_unknown");
        let problem = answer.json();
        assert_eq!(problem["detail"], "unknown dialect \"morse\"; supported dialects: agent");
        assert_eq!(problem["errors"][0]["detail"], "unknown dialect \"morse\"; must be one of: agent");
    }
    assert_eq!(harness.get(&format!("{events}=agent")).await.status, 200);

    let refused = harness.get("/ws?dialect=morse").await;
    assert_eq!(refused.problem(), "dialect_unknown");
    let sentence = "unknown dialect \"morse\"; supported dialects: agent, message, stream";
    assert_eq!(refused.json()["detail"], sentence);
    let (mut client, _) = Client::connect(&served, "").await;
    client.say("subscribe", json!({"agentId": agent.id.to_string(), "dialect": "morse"})).await;
    let frame = client.frame().await;
    assert_eq!(frame["payload"]["code"], "dialect_unknown");
    assert_eq!(
        frame["payload"]["message"],
        "dialect: unknown dialect \"morse\"; must be one of: agent, message, stream"
    );
    let long = "x".repeat(65);
    for wild in ["", "%3Cscript%3E", "a%0Ab", &long] {
        let refused = harness.get(&format!("/ws?dialect={wild}")).await;
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.starts_with("unknown dialect (invalid name)"),
            "what is no name is not sent back: {detail}"
        );
    }
    served.handle.stop(false).await;
}
