//! Clients that have requested everything, and read nothing.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::Message;

use super::{LONG, STALLED, completion, response};
use crate::follower::{Place, Socket, connect, connect_to};

/// How long a Socket.IO client waits that polls far too seldom.
const SELDOM: Duration = Duration::from_secs(5);
/// The receive buffer of a client that reads nothing: as small as the kernel allows.
const RECEIVE_BUFFER_BYTES: u32 = 4096;
/// A client that has this many unread bytes is being sent what it has asked for.
const BEGIN_BYTES: usize = 1024;
/// An MCP client sends this many requests, one after the other, and reads no response. Each has 200 kB or more, so that
/// together they do not fit into the buffers of a connection.
const MCP_REQUESTS: usize = 120;
const MCP_BYTES: usize = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    WebSocket,
    SocketIo,
    /// A Socket.IO client that has polled first, as all do by default.
    Upgraded,
    /// A Socket.IO client that polls far too seldom.
    Polling,
    EventStream,
    DurableStream,
    Response,
    ChatCompletion,
    /// A thread of AG-UI.
    Thread,
    /// Tools and transcripts of MCP.
    Tools,
    /// The whole history in one response.
    Download,
}

impl Kind {
    pub(super) const ALL: [Self; 11] = [
        Self::WebSocket,
        Self::SocketIo,
        Self::Upgraded,
        Self::Polling,
        Self::EventStream,
        Self::DurableStream,
        Self::Response,
        Self::ChatCompletion,
        Self::Thread,
        Self::Tools,
        Self::Download,
    ];
}

/// Clients that have requested everything, and read nothing.
#[derive(Default)]
pub(super) struct Stalled {
    pub(super) followers: Vec<Socket>,
    pub(super) streams: Vec<TcpStream>,
    pub(super) downloads: Vec<TcpStream>,
    pub(super) pollers: JoinSet<()>,
}

impl Stalled {
    /// `id` is being streamed, and `old` can already be downloaded.
    pub(super) async fn open(place: &Place, id: &str, old: &str) -> Self {
        let mut stalled = Self::default();
        for kind in Kind::ALL {
            for _ in 0..STALLED {
                stalled.open_one(kind, place, id, old).await;
            }
        }
        stalled
    }

    /// Waits until each client has received as much as fits, or a part of it, and nothing was refused.
    pub(super) async fn have_begun(&mut self) {
        for stream in self.streams.iter().chain(&self.downloads) {
            assert!(received(stream).await.starts_with(b"HTTP/1.1 200 "));
        }
        for socket in &self.followers {
            let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("it is not encrypted") };
            // An error would be shorter.
            received(stream).await;
        }
        assert!(self.pollers.try_join_next().is_none(), "they have sessions as long as they poll");
    }

    pub(super) async fn open_one(&mut self, kind: Kind, place: &Place, id: &str, old: &str) {
        let path = match kind {
            Kind::WebSocket => {
                let mut socket = connect(place).await.unwrap();
                let subscribe = json!({ "type": "subscribe", "payload": { "agentId": id, "since": 0 } });
                socket.send(Message::text(subscribe.to_string())).await.unwrap();
                return self.followers.push(socket);
            }
            Kind::SocketIo => {
                let mut io = connect_to(place, "/socket.io/?EIO=4&transport=websocket").await.unwrap();
                let auth = json!({ "token": place.token, "since": { id: 0 } });
                io.send(Message::text(format!("40{auth}"))).await.unwrap();
                return self.followers.push(io);
            }
            Kind::Upgraded => return self.followers.push(upgraded(place, id).await),
            Kind::Polling => {
                let poller = poller(place, id).await;
                self.pollers.spawn(poll_seldom(place.clone(), poller));
                return;
            }
            Kind::Tools => return self.streams.push(ask_tools(place, id, old).await),
            Kind::Download => {
                let path = format!("/api/agents/{old}/events?raw=true");
                return self.downloads.push(ask(place, &path, "application/json").await);
            }
            Kind::EventStream => format!("/api/agents/{id}/events?since=0"),
            Kind::DurableStream => format!("/v1/stream/agents/{id}/events?offset=-1&live=sse"),
            Kind::Response => format!("{}?stream=true", response(id)),
            Kind::ChatCompletion => format!("{}?stream=true", completion(id)),
            Kind::Thread => format!("/ag-ui/threads/{id}"),
        };
        self.streams.push(ask(place, &path, "text/event-stream").await);
    }
}

/// The first bytes that a client has not read yet.
async fn received(stream: &TcpStream) -> [u8; BEGIN_BYTES] {
    let mut received = [0; BEGIN_BYTES];
    let begun = async {
        while stream.peek(&mut received).await.unwrap() < BEGIN_BYTES {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, begun).await.expect("in time");
    received
}

/// A Socket.IO client that has asked for everything. Returns the path of its polls.
async fn poller(place: &Place, id: &str) -> String {
    let path = "/socket.io/?EIO=4&transport=polling";
    let open = place.http.get(format!("http://{}{path}", place.authority)).bearer_auth(&place.token);
    let open = open.send().await.unwrap().text().await.unwrap();
    let open: Value = serde_json::from_str(open.strip_prefix('0').unwrap()).unwrap();
    let path = format!("http://{}{path}&sid={}", place.authority, open["sid"].as_str().unwrap());
    let connect = format!("40{}", json!({ "since": { id: 0 } }));
    let connect = place.http.post(&path).bearer_auth(&place.token).body(connect);
    assert_eq!(connect.send().await.unwrap().status(), 200);
    path
}

/// A Socket.IO client that changes over to a WebSocket.
async fn upgraded(place: &Place, id: &str) -> Socket {
    let poller = poller(place, id).await;
    let (_, session) = poller.rsplit_once('=').expect("the id of the session");
    let path = format!("/socket.io/?EIO=4&transport=websocket&sid={session}");
    let mut io = connect_to(place, &path).await.unwrap();
    io.send(Message::text("2probe")).await.unwrap();
    assert_eq!(io.next().await.unwrap().unwrap(), Message::text("3probe"));
    io.send(Message::text("5")).await.unwrap();
    io
}

async fn poll_seldom(place: Place, path: String) {
    loop {
        let poll = place.http.get(&path).bearer_auth(&place.token).send().await.unwrap();
        assert_eq!(poll.status(), 200, "{}", poll.text().await.unwrap());
        tokio::time::sleep(SELDOM).await;
    }
}

pub(super) async fn ask(place: &Place, path: &str, accept: &str) -> TcpStream {
    let mut stream = narrow(place).await;
    let head = head(place, "GET", path, accept);
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    stream
}

/// A connection that takes as little as possible.
async fn narrow(place: &Place) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket.connect(place.authority.parse().unwrap()).await.unwrap()
}

fn head(place: &Place, method: &str, path: &str, accept: &str) -> String {
    let Place { authority, token, .. } = place;
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\naccept: {accept}\r\n"
    )
}

/// Sends a request with a body of JSON, and reads nothing. `more` is the rest of its head.
pub(super) async fn post(place: &Place, path: &str, more: &str, body: &Value) -> TcpStream {
    let (head, body) = (head(place, "POST", path, "application/json, text/event-stream"), body.to_string());
    let mut stream = narrow(place).await;
    stream.write_all(with_body(&format!("{head}{more}"), &body).as_bytes()).await.unwrap();
    stream
}

fn with_body(head: &str, body: &str) -> String {
    format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// An MCP client that follows `id` with notifications of its progress, and then asks for all of `old` again and again.
async fn ask_tools(place: &Place, id: &str, old: &str) -> TcpStream {
    let tool = |name: &str, agent: &str| {
        let arguments = json!({ "agent_id": agent, "max_bytes": MCP_BYTES });
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": 1 } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let uri = format!("tokenrail://agents/{old}/transcript");
    let transcript =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": uri } });
    let large = [tool("wait_for_agent", old), tool("read_agent", old), transcript];
    let head = head(place, "POST", "/mcp", "application/json, text/event-stream");
    let mut stream = narrow(place).await;
    for body in [tool("wait_for_agent", id)].iter().chain(large.iter().cycle().take(MCP_REQUESTS)) {
        stream.write_all(with_body(&head, &body.to_string()).as_bytes()).await.unwrap();
    }
    stream
}
