//! A reader gets each token once and in order, with every way of reading, at any time.

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Follower, Place, Way, connect, connect_to};
use crate::harness::{TestServer, assert_dense, numbers, outline, text_of};

const ALL: usize = usize::MAX >> 1;

#[tokio::test]
async fn every_way_of_reading_gives_the_same_events_live_and_later() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "stream", "deltas": 300, "pace_us": 500 })).await;
    let place = Place::of(&server);
    let ways = [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo];
    let mut live = ways.map(|way| (way, Follower::new(place.clone(), &id)));
    for (way, follower) in &mut live {
        assert!(follower.read(*way, ALL).await);
    }
    let stored = server.events(&id).await;
    assert_eq!(text_of(&stored), numbers(300));
    assert_eq!(outline(&stored)[..3], ["user_message", "init", "status"]);
    assert_eq!(outline(&stored).last().unwrap(), "result");
    for (way, follower) in live {
        assert_eq!(follower.events(), stored, "{way:?}");
    }
}

#[tokio::test]
async fn a_page_of_messages_is_one_row_per_bubble() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "mode": "stream", "deltas": 100 })).await;
    let path = format!("/api/agents/{id}/messages");
    let answer = server.request(Method::GET, &path).send().await.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("tokenrail-up-to"), header("tokenrail-head"));
    let rows: Vec<Value> = answer.json().await.unwrap();
    assert_eq!(text_of(&rows), numbers(100));
    assert!(rows.iter().all(|row| row["metadata"]["eventType"] != "content_delta"), "deltas are folded");
    let message = rows.iter().find(|row| row["metadata"]["eventType"] == "message").unwrap();
    assert_eq!(message["id"], message["metadata"]["messageId"]);
    assert!(message["firstSequence"].as_u64() < message["sequenceNumber"].as_u64());
    assert!(rows.iter().all(|row| row.get("raw").is_none()), "raw is for who asks");
    let raw = server.get(&format!("{path}?raw=true")).await;
    assert!(raw[1]["raw"].as_str().unwrap().contains("\"subtype\":\"init\""));
}

#[tokio::test]
async fn while_a_message_is_said_its_deltas_are_in_the_page() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "mode": "stream", "deltas": 20, "gate": gate, "gate_after": 7 })).await;
    let mut follower = Follower::new(Place::of(&server), &id);
    while follower.events().last().is_none_or(|event| event["content"] != "6 ") {
        assert!(follower.read(Way::Sse, 1).await);
    }
    let rows = server.get(&format!("/api/agents/{id}/messages")).await;
    let deltas: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["metadata"]["eventType"] == "content_delta")
        .collect();
    assert_eq!(deltas.len(), 7);
    std::fs::write(gate, "").unwrap();
    server.wait_for_status(&id, "completed").await;
}

#[tokio::test]
async fn one_connection_follows_many_agents_and_hears_the_news() {
    let server = TestServer::start();
    let mut socket = connect(&Place::of(&server)).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = server.launch(&json!({ "mode": "stream", "deltas": 50 })).await;
        let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
        socket.send(Message::text(subscribe.to_string())).await.unwrap();
        ids.push(id);
    }
    let mut seen: Vec<Vec<Value>> = vec![Vec::new(); ids.len()];
    let (mut complete, mut created) = (0, 0);
    while complete < ids.len() {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        let of = |id: &Value| ids.iter().position(|known| id == known).unwrap();
        match frame["type"].as_str().unwrap() {
            "agent:message" => {
                assert!(frame["timestamp"].is_u64() && frame["payload"]["timestamp"].is_string(), "{frame}");
                seen[of(&frame["payload"]["agentId"])].push(frame["payload"]["message"].clone());
            }
            "agent:complete" => {
                let agent = of(&frame["payload"]["agentId"]);
                assert_eq!(frame["payload"]["result"]["status"], "completed");
                assert_eq!(frame["payload"]["sequence"], seen[agent].len(), "after its last event");
                complete += 1;
            }
            "agent:created" => created += 1,
            "error" => panic!("{frame}"),
            _ => {}
        }
    }
    assert_eq!(created, 3);
    for events in seen {
        assert_dense(&events);
        assert_eq!(text_of(&events), numbers(50));
    }
}

#[tokio::test]
async fn a_client_that_asks_for_batches_gets_the_same_frames_in_fewer_messages() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "stream", "deltas": 400 })).await;
    let mut socket = connect_to(&Place::of(&server), "/ws?batch=50").await.unwrap();
    let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    let (mut events, mut messages) = (Vec::new(), 0);
    'reading: loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        messages += 1;
        let frame: Value = serde_json::from_str(&text).unwrap();
        let frames = match frame["type"].as_str().unwrap() {
            "batch" => {
                frame["messages"].as_array().or(frame["payload"]["messages"].as_array()).unwrap().clone()
            }
            _ => vec![frame],
        };
        for mut frame in frames {
            if frame["type"] == "agent:message" {
                events.push(frame["payload"]["message"].take());
            } else if frame["type"] == "agent:complete" {
                break 'reading;
            }
        }
    }
    assert_dense(&events);
    assert!(messages < events.len() / 2, "{messages} messages for {} events", events.len());
}

#[tokio::test]
async fn at_the_head_of_an_ended_agent_an_event_source_is_told_to_stop() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({})).await;
    let head = server.get(&format!("/api/agents/{id}")).await["head"].as_u64().unwrap();
    let path = format!("/api/agents/{id}/events");
    let ask = |last: u64| {
        server
            .request(Method::GET, &path)
            .header("accept", "text/event-stream")
            .header("last-event-id", last)
            .send()
    };
    let rest = ask(head - 1).await.unwrap().text().await.unwrap();
    assert!(rest.contains("event: result\n") && rest.contains("retry: 1000"), "{rest}");
    assert_eq!(ask(head).await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(ask(head + 1).await.unwrap().status(), StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_ticket_opens_one_stream() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({})).await;
    let (status, ticket) = server.post("/api/tickets", &json!({})).await;
    assert_eq!(status, StatusCode::CREATED);
    let ticket = ticket["ticket"].as_str().unwrap();
    let url = format!("http://{}/api/agents/{id}/events?ticket={ticket}", server.authority());
    let open = || server.http.get(&url).header("accept", "text/event-stream").send();
    assert_eq!(open().await.unwrap().status(), StatusCode::OK);
    assert_eq!(open().await.unwrap().status(), StatusCode::UNAUTHORIZED, "it is used up");
}
