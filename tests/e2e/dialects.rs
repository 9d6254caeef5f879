//! Clients with the dialects `message` and `stream`: whole turns, joins in the middle of a message, reconnects and a
//! crash.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::follower::{Place, Socket, connect_to};
use crate::harness::{PATIENCE, TestServer, fake_config, numbers};

/// A connection with one dialect.
struct Listener {
    socket: Socket,
    /// Frames of a batch that have not been returned yet.
    unread: Vec<Value>,
    /// How many messages came from the socket.
    messages: usize,
}

impl Listener {
    async fn connect(server: &TestServer, query: &str) -> Self {
        let socket = connect_to(&Place::of(server), &format!("/ws?{query}")).await.expect("a connection");
        Self { socket, unread: Vec::new(), messages: 0 }
    }

    async fn say(&mut self, kind: &str, payload: Value) {
        let frame = json!({ "type": kind, "payload": payload });
        self.socket.send(Message::text(frame.to_string())).await.expect("the server listens");
    }

    async fn subscribe(&mut self, id: &str, since: Option<u64>) {
        self.say("subscribe", json!({ "agentId": id, "since": since })).await;
        let subscribed = self.frame().await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
    }

    /// The next frame about an agent. It must not be an error.
    async fn frame(&mut self) -> Value {
        let frame = timeout(PATIENCE, self.next()).await.expect("something comes");
        assert_ne!(frame["type"], "error", "{frame}");
        frame
    }

    async fn next(&mut self) -> Value {
        loop {
            if self.unread.is_empty() {
                let message = self.socket.next().await;
                let Message::Text(text) = message.expect("it is open").expect("a message") else { continue };
                self.messages += 1;
                let mut frame: Value = serde_json::from_str(&text).expect("JSON");
                match frame.get_mut("messages").and_then(Value::as_array_mut) {
                    Some(batch) => self.unread = batch.drain(..).rev().collect(),
                    None => self.unread.push(frame),
                }
            }
            let Some(frame) = self.unread.pop() else { continue };
            let news = ["heartbeat", "agent:created", "agent:updated", "agent:deleted"];
            if !news.iter().any(|kind| frame["type"] == *kind) {
                return frame;
            }
        }
    }

    /// The frames up to the first one of that type.
    async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            frames.push(self.frame().await);
            if frames.last().is_some_and(|frame| frame["type"] == kind) {
                return frames;
            }
        }
    }

    /// The current state of the message.
    async fn status(&mut self, message: &Value) -> Value {
        self.say("message.status", json!({ "messageId": message })).await;
        self.until("message.status").await.pop().expect("an answer")["payload"].take()
    }
}

fn sequence(frame: &Value) -> u64 {
    frame["payload"]["sequence"].as_u64().expect("a number")
}

/// The text of the chunks, or of a stream.
fn said(frames: &[Value]) -> String {
    let texts = frames.iter().filter_map(|frame| match frame["type"].as_str() {
        Some("message.chunk") => frame["payload"]["content"]["text"].as_str(),
        Some("agent:stream") => frame["payload"]["text"].as_str(),
        _ => None,
    });
    texts.collect()
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().expect("a type")).collect();
    kinds.dedup();
    kinds
}

/// A server with an agent that has printed 7 of 20 words and waits for its gate.
async fn in_mid_message(config: &str) -> (TestServer, String, std::path::PathBuf) {
    let server = TestServer::start_with(config);
    let gate = server.folder.path().join("gate");
    let id = server.launch(&json!({ "mode": "stream", "deltas": 20, "gate": gate, "gate_after": 7 })).await;
    let mut listener = Listener::connect(&server, "dialect=stream").await;
    listener.subscribe(&id, Some(0)).await;
    let mut text = String::new();
    while text != numbers(7) {
        text.push_str(listener.frame().await["payload"]["text"].as_str().expect("text only"));
    }
    (server, id, gate)
}

#[tokio::test]
async fn who_reconnects_in_mid_message_gets_the_exact_rest_also_from_the_next_life_of_the_server() {
    for (dialect, last) in [("message", "message.end"), ("stream", "agent:complete")] {
        let (mut server, id, gate) = in_mid_message(&fake_config()).await;
        let query = format!("dialect={dialect}");
        let mut listener = Listener::connect(&server, &query).await;
        listener.subscribe(&id, Some(0)).await;
        let mut seen = Vec::new();
        while said(&seen) != numbers(7) {
            seen.push(listener.frame().await);
        }
        drop(listener);
        server.kill_and_start_again();
        std::fs::write(gate, "").unwrap();
        let mut listener = Listener::connect(&server, &query).await;
        listener.subscribe(&id, seen.last().map(sequence)).await;
        seen.extend(listener.until(last).await);
        assert_eq!(said(&seen), numbers(20));
        server.wait_for_status(&id, "completed").await;

        let mut later = Listener::connect(&server, &query).await;
        later.subscribe(&id, Some(0)).await;
        assert_eq!(later.until(last).await, seen, "{dialect}: the same frames, live in two pieces and later");
    }
}

#[tokio::test]
async fn a_page_that_is_reloaded_shows_the_same_message_before_and_after_its_end() {
    let (server, id, gate) = in_mid_message(&fake_config()).await;
    let rows = || -> i64 {
        let sql = "SELECT count(*) FROM agent_messages WHERE type = 'assistant'";
        server.database().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(rows(), 0, "a message that is being said is no row yet");
    let mut listener = Listener::connect(&server, "dialect=message").await;
    listener.subscribe(&id, None).await;
    let joined = [listener.frame().await, listener.frame().await];
    assert_eq!((kinds(&joined), said(&joined)), (vec!["message.start", "message.chunk"], numbers(7)));
    let message = joined[0]["payload"]["messageId"].clone();
    let status = listener.status(&message).await;
    assert_eq!((&status["state"], &status["content"]["text"]), (&json!("streaming"), &json!(numbers(7))));
    // A client can resume from the returned state.
    let mut resumed = Listener::connect(&server, "dialect=message").await;
    resumed.subscribe(&id, status["sequence"].as_u64()).await;

    std::fs::write(gate, "").unwrap();
    let rest = listener.until("message.end").await;
    assert_eq!(resumed.until("message.end").await, rest);
    assert_eq!(said(&joined) + &said(&rest), numbers(20));
    let end = rest.last().unwrap()["payload"].clone();
    assert_eq!(end["content"], json!({ "type": "text", "text": numbers(20) }));
    assert_eq!((&end["messageId"], &end["isComplete"]), (&message, &json!(true)));
    let status = listener.status(&message).await;
    assert_eq!((&status["state"], &status["content"]), (&json!("complete"), &end["content"]));

    server.wait_for_status(&id, "completed").await;
    let page = server.get(&format!("/api/agents/{id}/messages")).await;
    let bubbles: Vec<_> = page.as_array().unwrap().iter().filter(|row| row["type"] == "assistant").collect();
    assert_eq!((rows(), bubbles.len()), (1, 1), "one message is one row");
    assert_eq!((&bubbles[0]["id"], &bubbles[0]["content"]), (&message, &json!(numbers(20))));
}

#[tokio::test]
async fn agents_that_speak_at_the_same_time_do_not_mix_and_messages_may_be_long() {
    let server = TestServer::start();
    let mut listener = Listener::connect(&server, "dialect=message").await;
    let mut ids = Vec::new();
    for deltas in [1500, 1200] {
        let id = server.launch(&json!({ "mode": "stream", "deltas": deltas, "pace_us": 50 })).await;
        listener.say("subscribe", json!({ "agentId": id, "since": 0 })).await;
        ids.push((id, deltas));
    }
    let (mut frames, mut ends) = (Vec::new(), 0);
    while ends < 2 {
        let frame = listener.frame().await;
        ends += usize::from(frame["type"] == "message.end");
        if frame["type"] != "subscribed" {
            frames.push(frame);
        }
    }
    for (id, deltas) in ids {
        let own: Vec<_> =
            frames.iter().filter(|frame| frame["payload"]["agentId"] == id[..]).cloned().collect();
        assert_eq!(kinds(&own), ["message.new", "message.start", "message.chunk", "message.end"]);
        assert_eq!(said(&own), numbers(deltas));
        let end = &own.last().unwrap()["payload"];
        assert_eq!(end["content"]["text"], numbers(deltas));
        let chunks = own.iter().filter(|frame| frame["type"] == "message.chunk");
        assert_eq!(chunks.count() as u64, deltas);
        assert!(own[1..].iter().all(|frame| frame["payload"]["messageId"] == end["messageId"]));
    }
}

#[tokio::test]
async fn a_message_that_only_calls_a_tool_is_empty_and_a_stream_shows_the_tool() {
    let server = TestServer::start();
    let id = server.launch(&json!({ "mode": "tool", "deltas": 3 })).await;
    let mut listener = Listener::connect(&server, "dialect=message").await;
    listener.subscribe(&id, Some(0)).await;
    let empty = listener.until("message.end").await;
    assert_eq!(kinds(&empty), ["message.new", "message.start", "message.end"]);
    let end = &empty.last().unwrap()["payload"];
    assert_eq!((&end["content"]["text"], &end["isComplete"]), (&json!(""), &json!(true)));
    assert_eq!(said(&listener.until("message.end").await), numbers(3));

    let mut listener = Listener::connect(&server, "dialect=stream").await;
    listener.subscribe(&id, Some(0)).await;
    let frames = listener.until("agent:complete").await;
    assert_eq!(kinds(&frames), ["agent:tool_use", "agent:tool_result", "agent:stream", "agent:complete"]);
    let tool = json!({ "id": "toolu_fake0001", "name": "Bash", "input": { "command": "make \"it\"" } });
    assert_eq!(frames[0]["payload"]["tool"], tool);
    let result = json!({ "tool_use_id": "toolu_fake0001", "content": "made", "is_error": false });
    assert_eq!(frames[1]["payload"]["result"], result);
    let result = &frames.last().unwrap()["payload"]["result"];
    assert_eq!((&result["stop_reason"], &result["status"]), (&json!("end_turn"), &json!("completed")));
    assert_eq!(result["usage"]["input_tokens"], 12);
}

#[tokio::test]
async fn a_message_without_an_end_in_time_has_failed() {
    let server = TestServer::start_with(&(fake_config() + "[limits]\nstream_timeout_s = 1\n"));
    let id = server.launch(&json!({ "mode": "hang", "deltas": 5 })).await;
    let mut listener = Listener::connect(&server, "dialect=message").await;
    listener.subscribe(&id, Some(0)).await;
    let frames = listener.until("message.end").await;
    let end = &frames.last().unwrap()["payload"];
    assert_eq!((&end["isComplete"], &end["outcome"]), (&json!(false), &json!("failed")));
    assert_eq!(end["content"]["text"], numbers(5), "what it has said stays");
    let status = listener.status(&end["messageId"]).await;
    assert_eq!((&status["state"], &status["content"]), (&json!("failed"), &end["content"]));

    let mut listener = Listener::connect(&server, "dialect=stream").await;
    listener.subscribe(&id, Some(0)).await;
    let frames = listener.until("agent:complete").await;
    assert_eq!(kinds(&frames), ["agent:stream", "agent:error", "agent:complete"]);
    let [.., error, complete] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(
        (&error["payload"]["type"], &error["payload"]["recoverable"]),
        (&json!("timeout"), &json!(true))
    );
    assert_eq!(complete["payload"]["result"]["status"], "failed");
}

#[tokio::test]
async fn a_cancelled_turn_ends_with_agent_cancelled() {
    let (server, id, _) = in_mid_message(&fake_config()).await;
    let mut stream = Listener::connect(&server, "dialect=stream").await;
    stream.subscribe(&id, None).await;
    let mut message = Listener::connect(&server, "dialect=message").await;
    message.subscribe(&id, Some(0)).await;
    server.post(&format!("/api/agents/{id}/cancel"), &json!({})).await;
    let frames = stream.until("agent:cancelled").await;
    assert_eq!(kinds(&frames), ["agent:cancelled"]);
    let frames = message.until("message.end").await;
    let end = &frames.last().unwrap()["payload"];
    assert_eq!((&end["isComplete"], &end["outcome"]), (&json!(false), &json!("cancelled")));
    assert_eq!(message.status(&end["messageId"]).await["state"], "cancelled");
}

#[tokio::test]
async fn batches_and_a_throttle_give_the_same_text_in_fewer_messages() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "mode": "stream", "deltas": 600 })).await;
    let mut plain = Listener::connect(&server, "dialect=stream").await;
    plain.subscribe(&id, Some(0)).await;
    let frames = plain.until("agent:complete").await;
    let mut batched = Listener::connect(&server, "dialect=stream&batch").await;
    batched.subscribe(&id, Some(0)).await;
    assert_eq!(batched.until("agent:complete").await, frames, "the same frames");
    assert!(batched.messages < 10, "{} messages for {} frames", batched.messages, frames.len());
    let mut throttled = Listener::connect(&server, "dialect=stream&throttle").await;
    throttled.subscribe(&id, Some(0)).await;
    let measured = throttled.until("agent:complete").await;
    assert_eq!(said(&measured), numbers(600));
    assert_eq!(measured.last(), frames.last());
    assert!(measured.len() < 10, "{} frames", measured.len());
}
