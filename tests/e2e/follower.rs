//! Readers of one agent, for each way of reading. Each keeps the client's contract: it stores `last`, applies
//! `last + 1`, ignores events that it already has, and treats a gap as a failure.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{RequestBuilder, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{HEAD_PATIENCE, TestServer};

/// How long to wait before the next try at a place that is away.
const AWAY_PAUSE: Duration = Duration::from_millis(20);

/// The server's address and token. It does not borrow the server, so readers can outlive it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) http: reqwest::Client,
    pub(crate) authority: String,
    pub(crate) token: String,
}

impl Place {
    pub(crate) fn of(server: &TestServer) -> Self {
        Self { http: server.http.clone(), authority: server.authority(), token: server.token().to_owned() }
    }
}

/// A way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Rest,
    Sse,
    WebSocket,
    SocketIo,
}

/// The events that one reader has seen. They are kept as written, so that tests compare bytes.
pub(crate) struct Follower {
    pub(crate) place: Place,
    pub(crate) id: String,
    pub(crate) seen: Vec<Box<RawValue>>,
    results: usize,
    /// The file to which each event is written, one per line, before it counts as seen. Tests compare it with the
    /// server.
    pub(crate) history: Option<File>,
    /// How long a connection may be silent before it counts as ended.
    pub(crate) silence: Duration,
    /// How long REST waits before it asks again if nothing is new.
    pub(crate) pause: Duration,
}

/// The fields of an event that the client's contract needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    sequence_number: usize,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    event_type: &'a str,
}

/// The fields of a frame that the reader needs.
#[derive(Deserialize)]
struct Frame<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    code: Option<&'a str>,
    #[serde(default)]
    retryable: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Follower {
    pub(crate) fn new(place: Place, id: &str) -> Self {
        Self {
            place,
            id: id.to_owned(),
            seen: Vec::new(),
            results: 0,
            history: None,
            silence: Duration::MAX,
            pause: Duration::from_millis(2),
        }
    }

    /// Reads until the agent has a result. If its place is away, it goes on at the next of `others`, if there is one.
    pub(crate) async fn read_to_a_result(
        mut self,
        way: Way,
        mut others: impl Iterator<Item = Place>,
    ) -> Self {
        while self.results == 0 {
            if !self.read(way, usize::MAX >> 1).await {
                if let Some(other) = others.next() {
                    self.move_to(other);
                }
                tokio::time::sleep(AWAY_PAUSE).await;
            }
        }
        self
    }

    /// Goes on at another server, with the same cursor.
    pub(crate) fn move_to(&mut self, place: Place) {
        self.place = place;
    }

    /// What the server sends next; `None` if it is silent for too long.
    async fn soon<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(self.silence, next).await.ok()
    }

    /// The head of the response; `None` if there is none for too long, or the connection ends before it.
    async fn answer(&self, request: RequestBuilder) -> Option<Response> {
        tokio::time::timeout(self.silence.min(HEAD_PATIENCE), request.send()).await.ok()?.ok()
    }

    /// The events that it has seen, as JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.seen.iter().map(|event| serde_json::from_str(event.get()).expect("JSON")).collect()
    }

    /// The events that it has seen, byte for byte.
    pub(crate) fn bytes(&self) -> Vec<&str> {
        self.seen.iter().map(|event| event.get()).collect()
    }

    /// The number of turns whose end it has seen.
    pub(crate) fn results(&self) -> usize {
        self.results
    }

    /// Applies one event. After a gap, no event can be applied.
    pub(crate) fn apply(&mut self, event: &RawValue) {
        let head: Head = serde_json::from_str(event.get()).expect("an event");
        if head.sequence_number == self.seen.len() + 1 {
            if let Some(history) = &mut self.history {
                history.write_all(format!("{event}\n").as_bytes()).expect("written");
            }
            self.results += usize::from(head.metadata.event_type == "result");
            self.seen.push(event.to_owned());
        } else {
            let (number, last) = (head.sequence_number, self.seen.len());
            assert!(number <= last, "a hole: {number} came after {last}");
        }
    }

    /// Reads with `way` until the end of a turn, or until `most` more events have come. Returns false if the connection
    /// ended before that.
    pub(crate) async fn read(&mut self, way: Way, most: usize) -> bool {
        let until = self.seen.len() + most;
        match way {
            Way::Rest => self.read_rest(until).await,
            Way::Sse => self.read_sse(until).await,
            Way::WebSocket => self.read_websocket(until).await,
            Way::SocketIo => self.read_socket_io(until).await,
        }
    }

    /// The same, and reconnects after each disconnect, but each connection must make progress. If the machine is busy,
    /// a client may look as if it had stopped reading.
    pub(crate) async fn read_however_often_it_is_cut(&mut self, way: Way, most: usize) {
        let until = self.seen.len().saturating_add(most);
        loop {
            let (before, results) = (self.seen.len(), self.results);
            if self.read(way, until - before).await || until <= self.seen.len() || results < self.results {
                return;
            }
            assert!(before < self.seen.len(), "{way:?}: it gets no further than {before}");
        }
    }

    fn done(&self, until: usize, results: usize) -> bool {
        until <= self.seen.len() || results < self.results
    }

    async fn read_rest(&mut self, until: usize) -> bool {
        let results = self.results;
        while !self.done(until, results) {
            let last = self.seen.len();
            let url = format!("http://{}/api/agents/{}/events?since={last}", self.place.authority, self.id);
            let request = self.place.http.get(url).bearer_auth(&self.place.token);
            let Some(answer) = self.answer(request).await else { return false };
            // The client was too slow to send its request, so it sends it again.
            if answer.status() == reqwest::StatusCode::REQUEST_TIMEOUT {
                continue;
            }
            let page = self.soon(answer.json::<Vec<Box<RawValue>>>()).await;
            let Some(Ok(page)) = page else { return false };
            if page.is_empty() {
                tokio::time::sleep(self.pause).await;
            }
            for event in &page {
                self.apply(event);
            }
        }
        true
    }

    async fn read_sse(&mut self, until: usize) -> bool {
        let results = self.results;
        let url = format!("http://{}/api/agents/{}/events?keep=true", self.place.authority, self.id);
        let request = self.place.http.get(url).bearer_auth(&self.place.token);
        let request = request.header("accept", "text/event-stream").header("last-event-id", self.seen.len());
        let Some(answer) = self.answer(request).await else { return false };
        let (mut body, mut blocks) = (answer.bytes_stream(), Blocks::default());
        while !self.done(until, results) {
            let Some(Some(Ok(chunk))) = self.soon(body.next()).await else { return false };
            for block in blocks.complete(&chunk) {
                self.apply_block(&block);
            }
        }
        true
    }

    fn apply_block(&mut self, block: &str) {
        let (Some(id), Some(data)) = (field(block, "id"), field(block, "data")) else { return };
        let head: Head = serde_json::from_str(data).expect("an event");
        assert_eq!(head.sequence_number.to_string(), id);
        assert_eq!(Some(head.metadata.event_type), field(block, "event"));
        self.apply(serde_json::from_str(data).expect("JSON"));
    }

    async fn read_websocket(&mut self, until: usize) -> bool {
        let results = self.results;
        let Some(Some(mut socket)) = self.soon(connect(&self.place)).await else { return false };
        let payload = json!({ "agentId": self.id, "since": self.seen.len() });
        let subscribe = json!({ "type": "subscribe", "payload": payload });
        if socket.send(Message::text(subscribe.to_string())).await.is_err() {
            return false;
        }
        while !self.done(until, results) {
            let Some(Some(Ok(message))) = self.soon(socket.next()).await else { return false };
            let Message::Text(text) = message else { continue };
            let frame: Frame = serde_json::from_str(&text).expect("a frame");
            // A node that starts or ends may have changed what lists show. That says nothing about this agent.
            let is_error = frame.r#type == "error" && frame.payload.code != Some("news_lagged");
            if is_error && frame.payload.retryable {
                return false;
            }
            assert!(!is_error, "{text}");
            if frame.r#type == "agent:message" {
                self.apply(frame.payload.message.expect("a message"));
            }
        }
        true
    }
}

/// A stream of server-sent events, of which the last block may be incomplete.
#[derive(Default)]
pub(crate) struct Blocks(Vec<u8>);

impl Blocks {
    /// The blocks that this chunk completes.
    pub(crate) fn complete(&mut self, chunk: &[u8]) -> Vec<String> {
        // A chunk may end inside a character. Only whole blocks are read.
        self.0.extend_from_slice(chunk);
        let end = self.0.windows(2).rposition(|end| end == b"\n\n").map_or(0, |at| at + 2);
        let whole = String::from_utf8(self.0.drain(..end).collect()).expect("UTF-8");
        whole.split_terminator("\n\n").map(str::to_owned).collect()
    }
}

/// A field of a block.
pub(crate) fn field<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// What the server sends at the beginning of a Socket.IO connection.
const IO_OPEN: &str = "0{";
const IO_CONNECTED: &str = "40{";
const IO_EVENT: &str = "42";
const IO_PING: &str = "2";

impl Follower {
    async fn read_socket_io(&mut self, until: usize) -> bool {
        let results = self.results;
        let path = "/socket.io/?EIO=4&transport=websocket";
        let Some(Some(mut socket)) = self.soon(connect_to(&self.place, path)).await else { return false };
        let auth = json!({ "token": self.place.token, "since": { &self.id: self.seen.len() } });
        if socket.send(Message::text(format!("40{auth}"))).await.is_err() {
            return false;
        }
        while !self.done(until, results) {
            let Some(Some(Ok(message))) = self.soon(socket.next()).await else { return false };
            let Message::Text(text) = message else { continue };
            if text == IO_PING {
                if socket.send(Message::text("3")).await.is_err() {
                    return false;
                }
                continue;
            }
            if text.starts_with(IO_OPEN) || text.starts_with(IO_CONNECTED) {
                continue;
            }
            let event = text.strip_prefix(IO_EVENT).unwrap_or_else(|| panic!("{text}"));
            let (name, payload): (&str, Payload) = serde_json::from_str(event).expect("an event");
            // Socket.IO's clients do nothing about an error. The server must close the connection if they should
            // come again.
            assert!(name != "error" || payload.retryable || payload.code == Some("news_lagged"), "{text}");
            if name == "agent:message" {
                self.apply(payload.message.expect("a message"));
            }
        }
        true
    }
}

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a WebSocket with the token in the subprotocol; `None` if no server responds.
pub(crate) async fn connect(place: &Place) -> Option<Socket> {
    connect_to(place, "/ws").await
}

pub(crate) async fn connect_to(place: &Place, path: &str) -> Option<Socket> {
    let mut request = format!("ws://{}{path}", place.authority).into_client_request().expect("a request");
    let protocols = format!("tokenrail.v1, bearer.{}", place.token);
    request.headers_mut().insert("sec-websocket-protocol", protocols.parse().expect("a header"));
    connect_async(request).await.ok().map(|(socket, _)| socket)
}
