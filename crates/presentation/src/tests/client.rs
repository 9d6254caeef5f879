//! A WebSocket client that sends and receives exactly what a test says, and a server on its own port.

use std::time::Duration;

use actix_http::ws::{OpCode, Parser};
use actix_web::dev::ServerHandle;
use actix_web::web::{Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::harness::{HOST, Harness, TOKEN};
use crate::{Forwarded, ListenLimits, listen};

/// A WebSocket client that sends and receives exactly what a test says.
pub(crate) struct Client {
    socket: TcpStream,
    read: BytesMut,
}

/// What a client receives.
#[derive(Debug)]
pub(crate) enum Heard {
    Frame(Value),
    Ping,
    Pong(Bytes),
    Close(u16),
    End,
}

pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) handle: ServerHandle,
}

/// Serves the presentation on its own port.
pub(crate) fn serve(harness: &Harness) -> Served {
    serve_with(harness, ListenLimits { workers: 1, ..ListenLimits::default() })
}

/// The same, with other limits.
pub(crate) fn serve_with(harness: &Harness, limits: ListenLimits) -> Served {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = listen(listener, harness.api.clone(), Forwarded::default(), |_| {}, limits).unwrap();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    Served { port, handle }
}

/// Serves one agent that has ended. Returns its id too.
pub(crate) async fn serve_ended(prompt: &str) -> (Harness, Served, String) {
    let harness = Harness::new();
    let served = serve(&harness);
    let id = harness.launch_to_end(prompt).await;
    (harness, served, id)
}

impl Client {
    /// Performs the handshake. Also returns the head of the response.
    pub(crate) async fn connect(served: &Served, query: &str) -> (Self, String) {
        Self::connect_to(served, &format!("/ws{query}")).await
    }

    pub(crate) async fn connect_to(served: &Served, path: &str) -> (Self, String) {
        let mut socket = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
        let hello = format!(
            "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\n\
             Sec-WebSocket-Protocol: tokenrail.v1, bearer.{TOKEN}\r\n\r\n"
        );
        socket.write_all(hello.as_bytes()).await.unwrap();
        let mut client = Self { socket, read: BytesMut::new() };
        let end = loop {
            if let Some(end) = client.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert_ne!(client.fill().await, 0, "{:?}", client.read);
        };
        let head = String::from_utf8(client.read.split_to(end).to_vec()).unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        (client, head.to_ascii_lowercase())
    }

    pub(crate) async fn fill(&mut self) -> usize {
        let read = self.socket.read_buf(&mut self.read);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("something comes").unwrap_or(0)
    }

    /// Shrinks the receive buffer, so that the server notices when this client reads slowly.
    pub(crate) fn buffer_little(&self) {
        rustix::net::sockopt::set_socket_recv_buffer_size(&self.socket, 16 << 10).unwrap();
    }

    pub(crate) async fn send(&mut self, code: OpCode, payload: &[u8]) {
        let mut out = BytesMut::new();
        Parser::write_message(&mut out, payload, code, true, true);
        self.send_bytes(&out).await;
    }

    /// Sends frames unchanged.
    pub(crate) async fn send_bytes(&mut self, frames: &[u8]) {
        self.socket.write_all(frames).await.unwrap();
    }

    pub(crate) async fn say(&mut self, kind: &str, payload: Value) {
        let frame = json!({"type": kind, "payload": payload, "timestamp": 0});
        self.send(OpCode::Text, frame.to_string().as_bytes()).await;
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        let Some((code, payload)) = self.unread().await else { return Heard::End };
        match code {
            OpCode::Text => Heard::Frame(serde_json::from_slice(&payload).unwrap()),
            OpCode::Ping => Heard::Ping,
            OpCode::Pong => Heard::Pong(payload),
            OpCode::Close => Heard::Close(u16::from_be_bytes([payload[0], payload[1]])),
            other => panic!("{other:?}"),
        }
    }

    /// The next frame as it came. `None` at the end of the connection.
    pub(crate) async fn unread(&mut self) -> Option<(OpCode, Bytes)> {
        loop {
            if let Some((fin, code, payload)) = Parser::parse(&mut self.read, false, 1 << 20).unwrap() {
                assert!(fin, "frames are whole");
                return Some((code, payload.map_or_else(Bytes::new, BytesMut::freeze)));
            }
            if self.fill().await == 0 {
                return None;
            }
        }
    }

    /// The next frame that is not a lifecycle event.
    pub(crate) async fn frame(&mut self) -> Value {
        loop {
            match self.hear().await {
                Heard::Frame(frame) if is_news(&frame) => {}
                Heard::Frame(frame) => return frame,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The frames up to the end of a turn.
    pub(crate) async fn frames_to_the_end(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Value| frame["type"] != "agent:complete") {
            frames.push(self.frame().await);
        }
        frames
    }
}

fn is_news(frame: &Value) -> bool {
    ["agent:created", "agent:updated", "agent:deleted"].iter().any(|news| frame["type"] == *news)
}
