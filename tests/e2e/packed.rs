//! Packed deltas are the same events, with every way of reading, from any cursor, live and later.

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Place, Way, connect_to};
use crate::harness::TestServer;

/// What a reader receives after `since`, unchanged, up to the end of the turn.
async fn read(server: &TestServer, id: &str, way: Way, since: u64) -> Vec<Value> {
    match way {
        Way::Rest => page(server, id, since).await,
        Way::Sse => stream(server, id, since).await,
        Way::WebSocket => socket(server, id, since).await,
        Way::SocketIo => socket_io(server, id, since).await,
    }
}

async fn page(server: &TestServer, id: &str, since: u64) -> Vec<Value> {
    let (mut items, mut last) = (Vec::new(), since);
    loop {
        let path = format!("/api/agents/{id}/events?packed=true&limit=70&since={last}");
        let page = server.get(&path).await;
        let page = page.as_array().unwrap();
        let Some(newest) = page.last() else { return items };
        last = newest["to"].as_u64().or(newest["sequenceNumber"].as_u64()).unwrap();
        items.extend(page.iter().cloned());
    }
}

async fn stream(server: &TestServer, id: &str, since: u64) -> Vec<Value> {
    let request = server.request(Method::GET, &format!("/api/agents/{id}/events?packed=true"));
    let request = request.header("accept", "text/event-stream").header("last-event-id", since);
    let text = request.send().await.unwrap().text().await.unwrap();
    let mut items = Vec::new();
    for block in text.split_terminator("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let (Some(number), Some(data)) = (field("id"), field("data")) else { continue };
        let item: Value = serde_json::from_str(data).unwrap();
        let last = item["to"].as_u64().or(item["sequenceNumber"].as_u64()).unwrap();
        assert_eq!(number, last.to_string(), "the id of a block is the cursor behind it");
        assert_eq!(field("event") == Some("deltas"), item["texts"].is_array());
        items.push(item);
    }
    items
}

async fn socket(server: &TestServer, id: &str, since: u64) -> Vec<Value> {
    let mut socket = connect_to(&Place::of(server), "/ws?packed=true").await.unwrap();
    let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": since } });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    let mut items = Vec::new();
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let mut frame: Value = serde_json::from_str(&text).unwrap();
        match frame["type"].as_str().unwrap() {
            "agent:deltas" => items.push(frame["payload"].take()),
            "agent:message" => items.push(frame["payload"]["message"].take()),
            "agent:complete" => return items,
            _ => {}
        }
    }
}

async fn socket_io(server: &TestServer, id: &str, since: u64) -> Vec<Value> {
    let place = Place::of(server);
    let mut socket = connect_to(&place, "/socket.io/?EIO=4&transport=websocket").await.unwrap();
    let (auth, wish) =
        (json!({ "token": place.token }), json!({ "agentId": id, "since": since, "packed": true }));
    for packet in [format!("40{auth}"), format!("42[\"subscribe\",{wish}]")] {
        socket.send(Message::text(packet)).await.unwrap();
    }
    let mut items = Vec::new();
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let Some(event) = text.strip_prefix("42") else { continue };
        let (name, mut value): (String, Value) = serde_json::from_str(event).unwrap();
        match name.as_str() {
            "agent:deltas" => items.push(value),
            "agent:message" => items.push(value["message"].take()),
            _ => {}
        }
        if items.last().is_some_and(|item| item["metadata"]["eventType"] == "result") {
            return items;
        }
    }
}

/// The events of the frames or blocks, without their ids.
fn unpacked(items: &[Value]) -> Vec<Value> {
    items.iter().flat_map(events).collect()
}

fn events(item: &Value) -> Vec<Value> {
    let Some(texts) = item["texts"].as_array() else {
        let mut event = item.clone();
        event.as_object_mut().unwrap().remove("id");
        return vec![event];
    };
    let from = item["from"].as_u64().unwrap();
    assert_eq!(item["to"].as_u64().unwrap() + 1 - from, texts.len() as u64, "{item}");
    let mut at: jiff::Timestamp = item["createdAt"].as_str().unwrap().parse().unwrap();
    let event = |(index, text): (usize, &Value)| {
        let elapsed = item["elapsedMs"].get(index).map_or(0, |ms| ms.as_i64().unwrap());
        at += jiff::SignedDuration::from_millis(elapsed);
        json!({
            "agentId": item["agentId"], "sequenceNumber": from + index as u64, "type": "assistant",
            "role": "assistant", "content": text, "createdAt": format!("{at:.3}"),
            "metadata": { "eventType": item["eventType"], "messageId": item["messageId"], "part": item["part"] },
        })
    };
    texts.iter().enumerate().map(event).collect()
}

#[tokio::test]
async fn every_way_of_reading_packed_deltas_gives_the_same_events_live_and_from_within_a_frame() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "stream", "deltas": 600 })).await;
    // Two readers follow the turn live.
    let (over_socket, over_stream) =
        tokio::join!(read(&server, &id, Way::WebSocket, 0), read(&server, &id, Way::Sse, 0));
    server.wait_for_status(&id, "completed").await;
    let stored = unpacked(&server.events(&id).await);
    assert_eq!(unpacked(&over_socket), stored);
    assert_eq!(unpacked(&over_stream), stored);
    for way in [Way::Rest, Way::Sse, Way::WebSocket, Way::SocketIo] {
        for since in [0, 5, 77, 300, 599, stored.len() - 1] {
            let items = read(&server, &id, way, since as u64).await;
            assert_eq!(unpacked(&items), stored[since..], "{way:?} since {since}");
        }
        let items = read(&server, &id, way, 0).await;
        assert!(items.len() < stored.len() / 10, "{way:?}: {} items", items.len());
    }
}
