//! Readers of one agent in the words of other protocols. Each keeps that protocol's cursor, and continues there after
//! every disconnect. A gap is a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::follower::{Blocks, Place, field};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    Responses,
    ChatCompletions,
    AgUi,
    DurableStreams,
    Mcp,
}

impl Vocabulary {
    pub(crate) const ALL: [Self; 5] =
        [Self::Responses, Self::ChatCompletions, Self::AgUi, Self::DurableStreams, Self::Mcp];
}

/// How long to wait before the next try if the server is away, or if the next turn is not there yet.
const AWAY_PAUSE: Duration = Duration::from_millis(20);
/// How long a call of MCP waits: short, so that many of them have something to return while the agent works.
const WAIT_MS: u64 = 300;
/// Enough for each text of these agents.
const WAIT_BYTES: u64 = 200_000;

pub(crate) struct ForeignFollower {
    place: Place,
    id: String,
    vocabulary: Vocabulary,
    /// What it has received, as written.
    seen: Vec<String>,
    /// The entries of MCP. The pieces of a text are one entry here, because each call cuts a text elsewhere.
    entries: Vec<Value>,
    /// The text of the agent.
    text: String,
    /// Where it continues: the number of the events of this turn, the cursor, the offset, or the number of an entry.
    cursor: String,
    /// The number of turns whose end it has seen.
    ends: usize,
    /// After so many pieces of a stream, it disconnects and continues.
    pub(crate) pieces_max: usize,
    /// The journal has at least this many events, as far as it knows. It is set before an event counts as seen.
    pub(crate) reached: Arc<AtomicU64>,
}

impl ForeignFollower {
    pub(crate) fn new(place: Place, id: &str, vocabulary: Vocabulary) -> Self {
        Self {
            place,
            id: id.to_owned(),
            vocabulary,
            seen: Vec::new(),
            entries: Vec::new(),
            text: String::new(),
            cursor: beginning(vocabulary),
            ends: 0,
            pieces_max: usize::MAX,
            reached: Arc::default(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Reads until it has seen the end of `turns` turns, however often it is cut off.
    pub(crate) async fn read_turns(mut self, turns: usize) -> Self {
        while self.ends < turns {
            if self.read().await.is_none() {
                tokio::time::sleep(AWAY_PAUSE).await;
            }
        }
        self
    }

    /// Who reads everything again gets the same.
    pub(crate) async fn sees_the_same_again(&self) {
        let again = Self::new(self.place.clone(), &self.id, self.vocabulary).read_turns(self.ends).await;
        for (at, (seen, again)) in self.seen.iter().zip(&again.seen).enumerate() {
            assert_eq!(seen, again, "{:?}, at {at}", self.vocabulary);
        }
        assert_eq!(self.seen.len(), again.seen.len(), "{:?}", self.vocabulary);
        assert_eq!(self.entries, again.entries);
    }

    fn request(&self) -> RequestBuilder {
        let (hex, turn, cursor) = (self.id.replace('-', ""), self.ends + 1, &self.cursor);
        // The first event has the number 0.
        let after = cursor.parse().ok().and_then(|count: u64| count.checked_sub(1));
        let after = after.map_or_else(String::new, |after| format!("&starting_after={after}"));
        let path = match self.vocabulary {
            Vocabulary::Responses => format!("openai/v1/responses/resp_{hex}{turn:08x}?stream=true{after}"),
            Vocabulary::ChatCompletions => {
                format!("openai/v1/chat/completions/chatcmpl-{hex}{turn:08x}?stream=true{after}")
            }
            Vocabulary::AgUi if cursor.is_empty() => format!("ag-ui/threads/{}", self.id),
            Vocabulary::AgUi => format!("ag-ui/threads/{}?after={cursor}", self.id),
            Vocabulary::DurableStreams => {
                format!("v1/stream/agents/{}/events?offset={cursor}&live=sse", self.id)
            }
            Vocabulary::Mcp => "mcp".to_owned(),
        };
        let url = format!("http://{}/{path}", self.place.authority);
        let request = if self.vocabulary == Vocabulary::Mcp {
            let since: u64 = cursor.parse().expect("a number");
            let arguments = json!({ "agent_id": self.id, "since": since, "timeout_ms": WAIT_MS, "max_bytes": WAIT_BYTES });
            let params = json!({ "name": "wait_for_agent", "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            self.place.http.post(url).header("accept", "application/json, text/event-stream").json(&call)
        } else {
            self.place.http.get(url).header("accept", "text/event-stream")
        };
        request.bearer_auth(&self.place.token)
    }

    /// Reads until the end of a turn. `None` if it must ask again.
    async fn read(&mut self) -> Option<()> {
        let answer = self.request().send().await.ok()?;
        let status = answer.status();
        let is_not_there_yet = status == StatusCode::NOT_FOUND && 0 < self.ends;
        if status == StatusCode::SERVICE_UNAVAILABLE || is_not_there_yet {
            return None;
        }
        let at = format!("{:?} after {:?}", self.vocabulary, self.cursor);
        assert!(status.is_success(), "{at}: {status} {:?}", answer.text().await);
        if self.vocabulary == Vocabulary::Mcp {
            self.apply_wait(&answer.json().await.ok()?);
            return Some(());
        }
        self.read_blocks(answer).await
    }

    async fn read_blocks(&mut self, answer: Response) -> Option<()> {
        let (mut body, mut blocks, ends) = (answer.bytes_stream(), Blocks::default(), self.ends);
        let mut pieces = 0;
        while let Some(chunk) = body.next().await {
            for block in blocks.complete(&chunk.ok()?) {
                self.apply_block(&block);
                pieces += 1;
                if self.pieces_max <= pieces && ends == self.ends {
                    return None;
                }
            }
            if ends < self.ends {
                return Some(());
            }
        }
        // A thread of AG-UI is complete if no turn runs.
        let may_end = self.vocabulary == Vocabulary::AgUi && 0 < ends;
        assert!(may_end, "{:?}: a stream that ends early looks complete", self.vocabulary);
        None
    }

    fn apply_block(&mut self, block: &str) {
        let Some(data) = field(block, "data").filter(|data| *data != "[DONE]") else { return };
        if self.vocabulary == Vocabulary::DurableStreams {
            if field(block, "event") == Some("data") {
                let events: Vec<&RawValue> = serde_json::from_str(data).expect("events");
                for event in events {
                    self.apply_event(event.get());
                }
            }
            return;
        }
        let event: Value = serde_json::from_str(data).expect("JSON");
        let (said, is_end) = match self.vocabulary {
            Vocabulary::Responses => {
                assert_eq!(event["sequence_number"].to_string(), self.cursor, "no hole, no double");
                let kind = event["type"].as_str().expect("a type");
                let ends = ["response.completed", "response.incomplete", "response.failed"];
                let said = event["delta"].as_str().filter(|_| kind == "response.output_text.delta");
                (said, ends.contains(&kind))
            }
            Vocabulary::ChatCompletions => {
                assert_eq!(field(block, "id"), Some(&*self.cursor), "no hole, no double");
                let choice = &event["choices"][0];
                let is_end = choice["finish_reason"].is_string() || event["error"].is_object();
                (choice["delta"]["content"].as_str(), is_end)
            }
            _ => {
                let kind = event["type"].as_str().expect("a type");
                let said = event["delta"].as_str().filter(|_| kind == "TEXT_MESSAGE_CONTENT");
                (said, matches!(kind, "RUN_FINISHED" | "RUN_ERROR"))
            }
        };
        let said = said.unwrap_or_default();
        self.text.push_str(said);
        if self.vocabulary == Vocabulary::AgUi {
            let cursor = event["metadata"]["tokenrail"]["cursor"].as_str().expect("a cursor");
            cursor.clone_into(&mut self.cursor);
            let (number, _) = self.cursor.split_once('.').expect("two numbers");
            self.reached.fetch_max(number.parse().expect("a number"), Ordering::Relaxed);
        } else {
            // Each piece of text was an event of the journal.
            self.reached.fetch_add(u64::from(!said.is_empty()), Ordering::Relaxed);
            self.cursor = (self.cursor.parse::<u64>().expect("a number") + 1).to_string();
        }
        if is_end && self.vocabulary != Vocabulary::AgUi {
            self.cursor = beginning(self.vocabulary);
        }
        self.ends += usize::from(is_end);
        self.seen.push(block.to_owned());
    }

    /// An event of the journal. The client resumes after the last one that it has, so none comes twice.
    fn apply_event(&mut self, text: &str) {
        let event: Value = serde_json::from_str(text).expect("JSON");
        let number = event["sequenceNumber"].as_u64().expect("a number");
        let next = self.seen.len() as u64 + 1;
        assert_eq!(number, next, "the next event");
        if event["metadata"]["eventType"] == "content_delta" {
            self.text.push_str(event["content"].as_str().unwrap_or_default());
        }
        self.reached.fetch_max(number, Ordering::Relaxed);
        self.ends += usize::from(event["metadata"]["eventType"] == "result");
        self.cursor = format!("{number:020}");
        self.seen.push(text.to_owned());
    }

    fn apply_wait(&mut self, answer: &Value) {
        let read = &answer["result"]["structuredContent"];
        let until = read["next_since"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        assert!(self.cursor.parse::<u64>().expect("a number") <= until, "{answer}");
        self.reached.fetch_max(until, Ordering::Relaxed);
        for entry in read["entries"].as_array().expect("entries") {
            self.ends += usize::from(entry["kind"] == "turn_end");
            if entry["kind"] == "text" {
                self.text.push_str(entry["text"].as_str().expect("a text"));
            }
            match self.entries.last_mut() {
                Some(last) if continues(last, entry) => {
                    let text = [&*last, entry].map(|entry| entry["text"].as_str().expect("a text")).concat();
                    *last = entry.clone();
                    last["text"] = text.into();
                }
                _ => self.entries.push(entry.clone()),
            }
        }
        self.cursor = until.to_string();
    }
}

/// The cursor of a client that has nothing.
fn beginning(vocabulary: Vocabulary) -> String {
    let cursor = match vocabulary {
        Vocabulary::Responses | Vocabulary::ChatCompletions | Vocabulary::Mcp => "0",
        Vocabulary::AgUi => "",
        Vocabulary::DurableStreams => "-1",
    };
    cursor.to_owned()
}

/// Whether two entries are pieces of the same text.
fn continues(last: &Value, entry: &Value) -> bool {
    entry["kind"] == "text" && ["kind", "turn", "message"].iter().all(|key| last[key] == entry[key])
}
