//! Requests as bytes, for everything that a normal client would not send.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{PATIENCE, TestServer};

/// The response of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The code of the problem, also in the formats of OpenAI, MCP and Engine.IO. Empty if it is not a problem.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let code = body["code"].as_str().or(body["error"]["code"].as_str());
        let code = code.or(body["error"]["data"]["code"].as_str());
        let number = || body["code"].as_u64().map(|number| number.to_string());
        code.map(str::to_owned).or_else(number).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Sends bytes over a separate connection and reads one response; `None` if the connection is closed without one.
pub(crate) async fn send(server: &TestServer, bytes: impl AsRef<[u8]>) -> Option<Answer> {
    let mut socket = TcpStream::connect(server.authority()).await.unwrap();
    // The server may respond and close before it has read everything.
    let _ = socket.write_all(bytes.as_ref()).await;
    answer(&mut socket).await
}

/// Reads one response.
pub(crate) async fn answer(socket: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    loop {
        if bytes.starts_with(b"HTTP/1.1 100 ")
            && let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n")
        {
            // "100 Continue" is not the final response.
            bytes.drain(..end + 4);
        }
        if let Some(answer) = parse(&bytes, false) {
            return Some(answer);
        }
        let mut chunk = vec![0; 16 << 10];
        match timeout(PATIENCE, socket.read(&mut chunk)).await.expect("the server says something, or closes")
        {
            Ok(0) | Err(_) => return parse(&bytes, true),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Reads until the connection is closed. Returns everything.
pub(crate) async fn until_closed(socket: &mut TcpStream, patience: Duration) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = async {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(count @ 1..) = socket.read(&mut chunk).await {
            bytes.extend_from_slice(&chunk[..count]);
        }
    };
    timeout(patience, read).await.ok().map(|()| bytes)
}

/// The response, if it is complete.
pub(crate) fn parse(bytes: &[u8], ended: bool) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let body = &bytes[end + 4..];
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    // Of a stream, only the head is needed here.
    let stream = status == 101 || length.is_none();
    let whole = stream || ended || length.is_some_and(|length| length <= body.len());
    whole.then(|| Answer { status, head, body: String::from_utf8_lossy(body).into_owned() })
}

/// A request without a body, with a valid `Host` and token, and more header lines.
pub(crate) fn request(server: &TestServer, method: &str, path: &str, lines: &[&str]) -> String {
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n", server.authority(), bearer(server));
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

pub(crate) fn bearer(server: &TestServer) -> String {
    format!("Authorization: Bearer {}", server.token())
}

/// The header lines of a valid WebSocket handshake.
pub(crate) const HANDSHAKE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
