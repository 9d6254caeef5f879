//! Clients that request everything and read nothing. Their kernel buffers are as small as possible, so unread data soon
//! waits in the server.

use std::collections::BTreeMap;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::follower::{Place, Way};
use crate::harness::PATIENCE;

const RECEIVE_BUFFER_BYTES: u32 = 4096;

pub(crate) struct Deaf {
    place: Place,
    port: u16,
    stream: Stream,
}

enum Stream {
    Sse(TcpStream),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

impl Deaf {
    pub(crate) async fn open(place: &Place, id: &str, way: Way) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).expect("a small buffer");
        let mut socket =
            socket.connect(place.authority.parse().expect("an address")).await.expect("connected");
        let port = socket.local_addr().expect("an address").port();
        let (authority, token) = (&place.authority, &place.token);
        let stream = if way == Way::WebSocket {
            let mut request = format!("ws://{authority}/ws").into_client_request().expect("a request");
            let bearer = format!("Bearer {token}").parse().expect("a header");
            request.headers_mut().insert("authorization", bearer);
            let (mut socket, _) = client_async(request, socket).await.expect("a WebSocket");
            let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
            socket.send(Message::text(subscribe.to_string())).await.expect("sent");
            Stream::WebSocket(Box::new(socket))
        } else {
            let head = format!(
                "GET /api/agents/{id}/events?since=0 HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\n\
                 accept: text/event-stream\r\n\r\n"
            );
            socket.write_all(head.as_bytes()).await.expect("sent");
            Stream::Sse(socket)
        };
        Self { place: place.clone(), port, stream }
    }

    /// How many bytes each client has not read yet; `None` if the server has disconnected it.
    pub(crate) fn owed_bytes(all: &[Self]) -> Vec<Option<u64>> {
        let table = all.first().map(|one| owed_bytes(&one.place)).unwrap_or_default();
        all.iter().map(|one| table.get(&one.port).copied()).collect()
    }

    /// The events that it can still read after the server has disconnected it. Waits for the disconnect.
    pub(crate) async fn what_it_still_gets(self) -> Vec<Value> {
        let started = Instant::now();
        while owed_bytes(&self.place).contains_key(&self.port) {
            assert!(started.elapsed() < PATIENCE, "who takes nothing is never cut off");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        match self.stream {
            Stream::WebSocket(socket) => of_websocket(*socket).await,
            Stream::Sse(socket) => of_event_stream(socket).await,
        }
    }
}

/// The unread bytes of each client of the server, by its port, as the kernel lists them.
fn owed_bytes(place: &Place) -> BTreeMap<u16, u64> {
    let port: u16 = place.authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let local = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    // Established connections, seen from the server.
    let ours = words.filter(|words| words[1] == local && words[3] == "01");
    ours.map(|words| {
        let peer = u16::try_from(hex(words[2].rsplit(':').next().expect("a port"))).expect("a port");
        (peer, hex(words[4].split(':').next().expect("what is to be sent")))
    })
    .collect()
}

async fn of_websocket(mut socket: WebSocketStream<TcpStream>) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            let frame: Value = serde_json::from_str(&text).expect("a frame");
            if frame["type"] == "agent:message" {
                events.push(frame["payload"]["message"].clone());
            }
        }
    }
    events
}

async fn of_event_stream(mut socket: TcpStream) -> Vec<Value> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    while let Ok(count @ 1..) = socket.read(&mut piece).await {
        bytes.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8(whole_chunks(&bytes)).expect("UTF-8");
    let (whole, _) = text.rsplit_once("\n\n").unwrap_or_default();
    let data = whole.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.map(|data| serde_json::from_str::<Value>(data).expect("an event"));
    events.filter(|event| event["sequenceNumber"].is_u64()).collect()
}

/// The body of a chunked response, as far as its chunks are complete.
fn whole_chunks(answer: &[u8]) -> Vec<u8> {
    let end = |bytes: &[u8], mark: &[u8]| memchr::memmem::find(bytes, mark).map(|at| at + mark.len());
    let Some(head) = end(answer, b"\r\n\r\n") else { return Vec::new() };
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer[..head]));
    let (mut rest, mut body) = (&answer[head..], Vec::new());
    while let Some(line) = end(rest, b"\r\n") {
        let length = std::str::from_utf8(&rest[..line - 2]).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length");
        let Some(chunk) = rest.get(line..line + length) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(line + length + 2..).unwrap_or_default();
    }
    body
}
