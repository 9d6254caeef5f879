//! AI SDK chats over a WebSocket.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Place, Socket, connect_to};
use crate::harness::{PATIENCE, TestServer, no_process_is_left, numbers};

pub(crate) async fn say(socket: &mut Socket, frame: &Value) {
    socket.send(Message::text(frame.to_string())).await.expect("the server listens");
}

/// The next frame, whatever it says.
pub(crate) async fn next_frame(socket: &mut Socket) -> String {
    loop {
        let message = timeout(PATIENCE, socket.next()).await.expect("in time");
        if let Message::Text(text) = message.expect("it is open").expect("a message") {
            return text.to_string();
        }
    }
}

/// The next frame, which is no error.
pub(crate) async fn next_text(socket: &mut Socket) -> String {
    let text = next_frame(socket).await;
    assert!(!text.contains("\"type\":\"error\""), "{text}");
    text
}

/// The chunks of an answer until its end.
pub(crate) async fn chunks_until_the_end(socket: &mut Socket) -> Vec<Value> {
    let mut chunks = Vec::new();
    loop {
        let frame: Value = serde_json::from_str(&next_text(socket).await).unwrap();
        match frame["type"].as_str().unwrap() {
            "start" => {}
            "chunk" => {
                assert_eq!(frame["sequence"].as_u64().unwrap(), chunks.len() as u64, "{frame}");
                chunks.push(frame["chunk"].clone());
            }
            "end" => return chunks,
            _ => panic!("{frame}"),
        }
    }
}

async fn until_it_says(socket: &mut Socket, text: &str) {
    while !next_text(socket).await.contains(text) {}
}

#[tokio::test]
async fn an_answer_is_resumed_and_cancelled_by_its_own_id() {
    let server = TestServer::start();
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "deltas": 6, "gate": gate, "gate_after": 3 })).await;
    let mut socket = connect_to(&Place::of(&server), "/api/chat").await.unwrap();
    let resume = |request: &str, turn: u32| json!({ "type": "resume", "requestId": request, "id": format!("run-{id}-{turn}") });
    say(&mut socket, &resume("running", 1)).await;
    until_it_says(&mut socket, "\"2 \"").await;
    std::fs::write(gate, "").unwrap();
    until_it_says(&mut socket, "\"type\":\"end\"").await;
    say(&mut socket, &resume("ended", 1)).await;
    let chunks = chunks_until_the_end(&mut socket).await;
    let said: String = chunks.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert_eq!(said, numbers(6), "{chunks:?}");
    let mut rest = resume("rest", 1);
    rest["lastSequence"] = json!(chunks.len() - 2);
    say(&mut socket, &rest).await;
    until_it_says(&mut socket, "\"type\":\"start\"").await;
    let frame: Value = serde_json::from_str(&next_text(&mut socket).await).unwrap();
    assert_eq!(Some(&frame["chunk"]), chunks.last());
    until_it_says(&mut socket, "\"type\":\"end\"").await;
    say(&mut socket, &resume("unknown", 2)).await;
    let refused = next_frame(&mut socket).await;
    assert!(refused.contains("\"errorText\":\"no such chat\""), "{refused}");

    let script = json!({ "mode": "hang", "deltas": 3 }).to_string();
    server.post(&format!("/api/agents/{id}/messages"), &json!({ "content": script })).await;
    say(&mut socket, &resume("hangs", 2)).await;
    until_it_says(&mut socket, "\"2 \"").await;
    say(&mut socket, &json!({ "type": "abort", "requestId": "hangs" })).await;
    server.wait_for_status(&id, "cancelled").await;
    no_process_is_left(&id).await;
}
