//! Every kind of client at a server that is not the home of its agent: it reads the same bytes as at the home, while
//! the agent works and afterwards.

mod continuing;

use std::path::PathBuf;

use reqwest::header::{ACCEPT, ETAG};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokenrail_test_postgres::{Database, database};
use tokio::time::timeout;

use super::WAYS;
use super::vocabularies::{call, pair, path_of, send};
use crate::chat_socket::{next_frame, say};
use crate::follower::{Follower, Place, Socket, connect_to};
use crate::harness::{PATIENCE, TestServer};

const DELTAS: u64 = 40;

/// Streams that end with the turn.
const STREAMS: [(&str, &str); 13] = [
    ("GET", "/api/agents/ID/events"),
    ("GET", "/api/chat/run-ID-2/stream"),
    ("GET", "/api/chat/run-ID-2-v5/stream"),
    ("GET", "/api/chat/run-ID-2-v7/stream"),
    ("GET", "/api/chat/CHAT/stream?startIndex=0"),
    ("POST", "/v1/runs/run-ID-2/stream?format=letta"),
    ("POST", "/v1/runs/run-ID-2-tokens/stream?format=letta"),
    ("POST", "/v1/runs/run-ID-2/stream?format=kelpie"),
    ("POST", "/v1/runs/run-ID-2/stream?format=both"),
    ("POST", "/v1/conversations/conv-ID/stream"),
    ("GET", "/openai/v1/responses/resp_HEX00000002?stream=true"),
    ("GET", "/openai/v1/chat/completions/chatcmpl-HEX00000002?stream=true"),
    ("GET", "/ag-ui/threads/ID"),
];

/// Answers that are whole.
const PAGES: [&str; 17] = [
    "/api/agents/ID",
    "/api/agents/ID/events",
    "/api/agents/ID/events?packed=true",
    "/api/agents/ID/turns",
    "/api/agents/ID/export",
    "/api/chat/CHAT/messages",
    "/v1/agents/agent-ID",
    "/v1/agents/agent-ID/messages",
    "/v1/conversations/conv-ID",
    "/v1/conversations/conv-ID/messages",
    "/v1/runs/run-ID-2",
    "/v1/runs/run-ID-2/messages",
    "/v1/runs/run-ID-2/usage",
    "/openai/v1/responses/resp_HEX00000002",
    "/openai/v1/responses/resp_HEX00000001/input_items",
    "/openai/v1/chat/completions/chatcmpl-HEX00000001",
    "/v1/stream/agents/ID/events",
];

/// An agent that belongs to a chat. It has used a tool in its first turn, and stops in the middle of its second one
/// until the gate is open.
struct Story {
    id: String,
    chat: String,
    gate: PathBuf,
}

impl Story {
    /// Starts two nodes. The first one is the home of the agent.
    async fn begin() -> (Database, TestServer, TestServer, Self) {
        let database = database();
        let (home, other) = pair(&database);
        let gate = home.folder.path().join("gate");
        let chat = "read-anywhere".to_owned();
        let say = async |id: &str, script: Value| {
            let parts = json!([{ "type": "text", "text": script.to_string() }]);
            let body = json!({ "id": chat, "messages": [{ "id": id, "role": "user", "parts": parts }] });
            send(&home, Method::POST, "/api/chat", &body).await
        };
        say("m1", json!({ "mode": "tool", "deltas": 3 })).await.text().await.unwrap();
        drop(say("m2", json!({ "deltas": DELTAS, "gate": gate, "gate_after": DELTAS / 2 })).await);
        let agents = home.get("/api/agents").await;
        let id = agents[0]["agentId"].as_str().unwrap().to_owned();
        other.wait_until(&id, |agent| agent["turn"] == 2).await;
        (database, home, other, Self { id, chat, gate })
    }

    fn path(&self, path: &str) -> String {
        path_of(path, &self.id).replace("CHAT", &self.chat)
    }

    /// All answers that are whole, with the tags by which caches know them.
    async fn pages(&self, server: &TestServer) -> Vec<(&'static str, String, String)> {
        let mut pages = Vec::new();
        for path in PAGES {
            let answer = send(server, Method::GET, &self.path(path), &Value::Null).await;
            let tag = answer.headers().get(ETAG).map_or("", |tag| tag.to_str().unwrap()).to_owned();
            pages.push((path, tag, answer.text().await.unwrap()));
        }
        let read = call(server, "read_agent", &json!({ "agent_id": self.id, "since": 0 })).await;
        pages.push(("read_agent", String::new(), read.to_string()));
        pages
    }
}

/// A stream that is open.
struct Reading {
    answer: Response,
    seen: Vec<u8>,
}

impl Reading {
    /// Each stream begins at once with a comment, or with the time after which clients reconnect.
    async fn begin(server: &TestServer, way: (&str, &str), story: &Story) -> Self {
        Self::begin_with(server, way, story, &json!({ "starting_after": 0 })).await
    }

    /// `body` is for a `POST`.
    async fn begin_with(
        server: &TestServer,
        (method, path): (&str, &str),
        story: &Story,
        body: &Value,
    ) -> Self {
        let request = server.request(method.parse().unwrap(), &story.path(path));
        let request = request.header(ACCEPT, "text/event-stream");
        Self::open(if method == "POST" { request.json(body) } else { request }).await
    }

    async fn open(request: RequestBuilder) -> Self {
        let mut answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}: {}", answer.url(), answer.status());
        let first = timeout(PATIENCE, answer.chunk()).await.expect("in time").unwrap().expect("it is open");
        Self { answer, seen: first.to_vec() }
    }

    /// Everything but the signs of life.
    async fn until_its_end(mut self) -> String {
        while self.more().await {}
        self.blocks().concat()
    }

    async fn more(&mut self) -> bool {
        let more = timeout(PATIENCE, self.answer.chunk()).await.expect("in time").unwrap();
        self.seen.extend_from_slice(more.as_deref().unwrap_or_default());
        more.is_some()
    }

    fn blocks(&self) -> Vec<String> {
        let text = std::str::from_utf8(&self.seen).unwrap();
        let is_sign = |block: &&str| block.starts_with(':') || block.contains("\"message_type\":\"ping\"");
        text.split_inclusive("\n\n").filter(|block| !is_sign(block)).map(str::to_owned).collect()
    }
}

/// A WebSocket whose client reads one turn.
struct Frames {
    socket: Socket,
    seen: Vec<String>,
    /// What the frame with the end of a turn contains, and how many of them there are.
    end: (&'static str, usize),
}

impl Frames {
    async fn native(server: &TestServer, story: &Story) -> Self {
        let mut socket = connect_to(&Place::of(server), "/ws").await.unwrap();
        let payload = json!({ "agentId": story.id, "since": 0 });
        say(&mut socket, &json!({ "type": "subscribe", "payload": payload })).await;
        Self { socket, seen: Vec::new(), end: ("\"eventType\":\"result\"", 2) }
    }

    async fn of_chat(server: &TestServer, story: &Story) -> Self {
        let mut socket = connect_to(&Place::of(server), "/api/chat").await.unwrap();
        let id = story.path("run-ID-2");
        say(&mut socket, &json!({ "type": "resume", "requestId": "r", "id": id })).await;
        Self { socket, seen: Vec::new(), end: ("\"type\":\"end\"", 1) }
    }

    /// What concerns lists depends on the moment, and does not count: after a restart, news of them can be missing.
    async fn next(&mut self) {
        let text = next_frame(&mut self.socket).await;
        let is_error = text.contains("\"type\":\"error\"") && !text.contains("\"news_lagged\"");
        assert!(!is_error, "{text}");
        let kinds = ["agent:message", "start", "chunk", "end"].map(|kind| format!("{{\"type\":\"{kind}\""));
        if kinds.iter().any(|kind| text.starts_with(kind)) {
            self.end.1 -= usize::from(text.contains(self.end.0));
            self.seen.push(text);
        }
    }

    async fn until_begun(mut self) -> Self {
        while self.seen.len() < 3 {
            self.next().await;
        }
        self
    }

    async fn until_its_end(mut self) -> Vec<String> {
        while 0 < self.end.1 {
            self.next().await;
        }
        self.seen
    }
}

async fn followed(server: &TestServer, story: &Story) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    for way in WAYS {
        let mut follower = Follower::new(Place::of(server), &story.id);
        while follower.results() < 2 {
            follower.read_however_often_it_is_cut(way, usize::MAX >> 1).await;
        }
        seen.push(follower.bytes().into_iter().map(str::to_owned).collect());
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vocabulary_reads_the_same_bytes_at_any_node() {
    let (_database, mut home, other, story) = Story::begin().await;
    let mut streams = Vec::new();
    for way in STREAMS {
        streams.push((
            way,
            Reading::begin(&home, way, &story).await,
            Reading::begin(&other, way, &story).await,
        ));
    }
    let mut sockets = Vec::new();
    for server in [&home, &other] {
        let (native, chat) = (Frames::native(server, &story).await, Frames::of_chat(server, &story).await);
        sockets.push((native.until_begun().await, chat.until_begun().await));
    }
    std::fs::write(&story.gate, "").unwrap();
    let mut texts = Vec::new();
    for (way, at_home, at_other) in streams {
        let (at_home, at_other) = (at_home.until_its_end().await, at_other.until_its_end().await);
        assert!(at_home.len() > 100, "{way:?}: {at_home}");
        assert_eq!(at_other, at_home, "{way:?} while it works");
        texts.push(at_home);
    }
    let mut live = Vec::new();
    for (native, chat) in sockets {
        live.push((native.until_its_end().await, chat.until_its_end().await));
    }
    assert_eq!(live[0], live[1]);

    other.wait_for_status(&story.id, "completed").await;
    let again = all_is_the_same_afterwards(&home, &other, &story, &texts).await;
    assert_eq!(again, live[0].1, "an answer is the same as when it came");
    let pages = story.pages(&other).await;
    home.kill_and_start_again();
    assert_eq!(all_is_the_same_afterwards(&home, &other, &story, &texts).await, again, "after a restart");
    assert_eq!(story.pages(&home).await, pages, "after a restart");
}

/// `texts` is what the streams had while the agent worked. Returns the frames of the answer in the chat.
async fn all_is_the_same_afterwards(
    home: &TestServer,
    other: &TestServer,
    story: &Story,
    texts: &[String],
) -> Vec<String> {
    for (way, text) in STREAMS.into_iter().zip(texts) {
        for server in [home, other] {
            let again = Reading::begin(server, way, story).await.until_its_end().await;
            assert_eq!(again, *text, "{way:?} afterwards");
        }
    }
    assert_eq!(story.pages(other).await, story.pages(home).await);
    assert_eq!(followed(other, story).await, followed(home, story).await);
    let mut again = Vec::new();
    for server in [home, other] {
        let (native, chat) = (Frames::native(server, story).await, Frames::of_chat(server, story).await);
        again.push((native.until_its_end().await, chat.until_its_end().await));
    }
    assert_eq!(again[0], again[1]);
    again.remove(0).1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_of_a_turn_ends_with_it_if_its_node_is_lost() {
    let (_database, mut home, other, story) = Story::begin().await;
    let mut streams = Vec::new();
    for way in STREAMS {
        streams.push(Reading::begin(&other, way, &story).await);
    }
    let wait = json!({ "agent_id": story.id, "since": 0, "timeout_ms": 100_000, "max_bytes": 200_000 });
    home.kill_9();
    let waited = call(&other, "wait_for_agent", &wait).await;
    assert_eq!((&waited["reason"], &waited["agent"]["status"]), (&json!("ended"), &json!("interrupted")));

    for (way, live) in STREAMS.into_iter().zip(streams) {
        let live = live.until_its_end().await;
        assert!(live.contains("the agent's node is lost"), "{way:?}: {live}");
        assert_eq!(Reading::begin(&other, way, &story).await.until_its_end().await, live, "{way:?} again");
    }
    let mut pages = story.pages(&other).await;
    for (_, _, text) in &mut pages {
        *text = text.replace("\"nodeState\":\"lost\",", "");
    }
    home.start_again();
    std::fs::write(&story.gate, "").unwrap();
    super::nodes::until_its_processes_end(&story.id).await;
    assert_eq!(story.pages(&home).await, pages, "what comes after the end does not count");
}
