//! A client that loses its server in the middle of an answer continues at another one, with the cursor that it has.

use futures_util::future::join;
use reqwest::Method;
use serde_json::{Value, json};
use tokenrail_test_postgres::database;

use super::super::vocabularies::{call, pair};
use super::{Reading, Story};
use crate::harness::TestServer;

/// A stream that a client continues.
struct Continued {
    method: &'static str,
    path: &'static str,
    /// What the cursor is called: in the query, or in the body of a `POST`.
    name: &'static str,
    /// The cursor of a client that has these blocks.
    cursor: fn(&[String]) -> Value,
}

const CONTINUED: [Continued; 7] = [
    Continued {
        method: "GET",
        path: "/openai/v1/responses/resp_HEX00000002?stream=true&",
        name: "starting_after",
        cursor: |blocks| data(blocks)["sequence_number"].clone(),
    },
    Continued {
        method: "GET",
        path: "/openai/v1/chat/completions/chatcmpl-HEX00000002?stream=true&",
        name: "starting_after",
        cursor: id,
    },
    Continued {
        method: "GET",
        path: "/ag-ui/threads/ID?",
        name: "after",
        cursor: |blocks| data(blocks)["metadata"]["tokenrail"]["cursor"].clone(),
    },
    Continued {
        method: "GET",
        path: "/api/chat/run-ID-2/stream?",
        name: "startIndex",
        cursor: |blocks| blocks.len().into(),
    },
    Continued {
        method: "GET",
        path: "/api/chat/run-ID-2-v7/stream?",
        name: "startIndex",
        cursor: |blocks| blocks.len().into(),
    },
    Continued {
        method: "POST",
        path: "/v1/runs/run-ID-2-tokens/stream?format=letta",
        name: "starting_after",
        cursor: |blocks| data(blocks)["seq_id"].clone(),
    },
    Continued {
        method: "POST",
        path: "/v1/runs/run-ID-2/stream?format=kelpie",
        name: "starting_after",
        cursor: id,
    },
];

/// The data of the last block.
fn data(blocks: &[String]) -> Value {
    let (_, data) = blocks.last().unwrap().split_once("data: ").unwrap();
    serde_json::from_str(data).unwrap()
}

/// The id of the last block.
fn id(blocks: &[String]) -> Value {
    let mut lines = blocks.last().unwrap().lines();
    lines.find_map(|line| line.strip_prefix("id: ")).unwrap().parse().unwrap()
}

impl Continued {
    async fn begin(&self, server: &TestServer, story: &Story) -> Reading {
        Reading::begin(server, (self.method, self.path), story).await
    }

    /// What comes after these blocks, at another server.
    async fn rest(&self, server: &TestServer, story: &Story, seen: &[String]) -> Reading {
        let cursor = (self.cursor)(seen);
        let (path, body) = if self.method == "POST" {
            (self.path.to_owned(), json!({ self.name: cursor }))
        } else {
            let cursor = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
            (format!("{}{}={cursor}", self.path, self.name), Value::Null)
        };
        Reading::begin_with(server, (self.method, &path), story, &body).await
    }
}

impl Reading {
    /// The blocks up to the one that has this, at which the client is cut off.
    async fn cut_after(mut self, word: &str) -> Vec<String> {
        loop {
            let mut blocks = self.blocks();
            if let Some(at) = blocks.iter().position(|block| block.contains(word) && block.ends_with("\n\n"))
            {
                blocks.truncate(at + 1);
                return blocks;
            }
            assert!(self.more().await, "it ends before {word}: {blocks:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_cut_off_in_mid_answer_continues_at_the_other_node() {
    let (_database, home, other, story) = Story::begin().await;
    let mut cut = Vec::new();
    for stream in CONTINUED {
        let seen = stream.begin(&home, &story).await.cut_after("\"7 \"").await;
        let rest = stream.rest(&other, &story, &seen).await;
        cut.push((stream, seen.concat(), rest));
    }
    let mut entries = json!([]);
    let mut since = 0;
    while !entries.to_string().contains("7 ") {
        let look = json!({ "agent_id": story.id, "timeout_ms": 100 });
        let read = call(&home, "wait_for_agent", &look).await;
        (entries, since) = (read["entries"].clone(), read["next_since"].as_u64().unwrap());
    }
    let rest = json!({ "agent_id": story.id, "since": since });
    let (rest, opened) =
        join(call(&other, "wait_for_agent", &rest), async { std::fs::write(&story.gate, "") }).await;
    opened.unwrap();
    for (stream, seen, rest) in cut {
        let (path, rest) = (stream.path, rest.until_its_end().await);
        assert!(rest.contains("\"39 \""), "{path}: {rest}");
        let whole = stream.begin(&home, &story).await.until_its_end().await;
        assert_eq!(seen + &rest, whole, "{path}");
    }
    let whole = call(&home, "read_agent", &json!({ "agent_id": story.id })).await;
    assert_eq!(said(&entries) + &said(&rest["entries"]), said(&whole["entries"]));
    assert_eq!((&rest["reason"], &rest["next_since"]), (&json!("ended"), &whole["next_since"]));
}

/// A request that starts an agent. If a client sends it again, it gets the stream of the same answer.
struct Repeated<'a> {
    path: &'static str,
    body: &'a Value,
}

impl Repeated<'_> {
    async fn send(&self, server: &TestServer, cursor: &str) -> Reading {
        let request = server.request(Method::POST, &format!("{}{cursor}", self.path)).json(self.body);
        Reading::open(request.header("idempotency-key", "repeated")).await
    }
}

/// With a cursor, it gets the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_sends_its_request_again_at_the_other_node() {
    let database = database();
    let (home, other) = pair(&database);
    let gate = home.folder.path().join("repeated");
    let script = json!({ "deltas": 40, "gate": gate, "gate_after": 20 }).to_string();
    let said = json!([{ "id": "m", "role": "user", "content": script }]);
    let run = json!({ "threadId": "t", "runId": "r", "messages": said });
    let response = json!({ "model": "fake", "input": script, "stream": true });
    let run = Repeated { path: "/ag-ui/fake", body: &run };
    let response = Repeated { path: "/openai/v1/responses", body: &response };

    let seen_of_run = run.send(&home, "").await.cut_after("\"7 \"").await;
    let cursor = data(&seen_of_run)["metadata"]["tokenrail"]["cursor"].as_str().unwrap().to_owned();
    let rest_of_run = run.send(&other, &format!("?after={cursor}")).await;
    let seen_of_response = response.send(&home, "").await.cut_after("\"7 \"").await;
    let whole_response = response.send(&other, "").await;
    std::fs::write(&gate, "").unwrap();

    let whole_run = seen_of_run.concat() + &rest_of_run.until_its_end().await;
    assert!(whole_run.contains("\"39 \""), "{whole_run}");
    assert_eq!(run.send(&home, "").await.until_its_end().await, whole_run);
    let whole_response = whole_response.until_its_end().await;
    assert!(whole_response.starts_with(&seen_of_response.concat()), "{whole_response}");
    assert_eq!(response.send(&home, "").await.until_its_end().await, whole_response);
    let agents = other.get("/api/agents").await;
    assert_eq!(agents.as_array().unwrap().len(), 2, "one for the run, and one for the response");
}

/// The text of entries.
fn said(entries: &Value) -> String {
    let texts = entries.as_array().unwrap().iter().filter(|entry| entry["kind"] == "text");
    texts.map(|entry| entry["text"].as_str().unwrap()).collect()
}

/// The events of a Durable Stream after this offset, up to the block that has this, and the offset after it. Such a
/// stream does not end with a turn.
async fn durable(server: &TestServer, story: &Story, offset: &str, word: &str) -> (Vec<Value>, String) {
    let path = format!("/v1/stream/agents/ID/events?live=sse&offset={offset}");
    let mut reading = Reading::begin(server, ("GET", &path), story).await;
    loop {
        let blocks = reading.blocks();
        let last = blocks.iter().position(|block| block.contains(word));
        // The offset follows the events.
        let read = last
            .and_then(|last| blocks.get(..last + 2))
            .filter(|read| read[read.len() - 1].ends_with("\n\n"));
        if let Some(read) = read {
            let is_data = |block: &&String| block.starts_with("event: data");
            let events = read
                .iter()
                .filter(is_data)
                .flat_map(|block| data(std::slice::from_ref(block)).as_array().unwrap().clone());
            return (events.collect(), data(read)["streamNextOffset"].as_str().unwrap().to_owned());
        }
        assert!(reading.more().await, "it ends before {word}: {blocks:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_durable_stream_continues_at_the_other_node_from_any_offset() {
    let (_database, home, other, story) = Story::begin().await;
    let (mut seen, offset) = durable(&home, &story, "-1", "\"7 \"").await;
    std::fs::write(&story.gate, "").unwrap();
    // The first turn had ended before.
    let (rest, end) = durable(&other, &story, &offset, "\"eventType\":\"result\"").await;
    assert!(!rest.is_empty() && offset < end, "{offset}, then {end}");
    seen.extend(rest);
    let events = home.events(&story.id).await;
    assert_eq!(seen, events);
    let last = format!("\"sequenceNumber\":{}", events.len());
    for have in [1, events.len() / 2, events.len() - 1] {
        let (rest, _) = durable(&other, &story, &format!("{have:020}"), &last).await;
        assert_eq!(rest, events[have..], "after {have}");
    }
}
