//! A reader of server-sent events that costs as little as possible.

use bytes::{Buf as _, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;
use crate::http::Place;
use crate::machine::now_us;
use crate::websocket::{Seen, number};

const READ_BYTES: usize = 64 << 10;

/// Reads the agent's events from the first to the `last`.
pub(crate) async fn read(place: &Place, agent: &str, last: u64) -> Result<Seen, Failure> {
    let mut stream = TcpStream::connect(place.address).await?;
    let path = format!("/api/agents/{agent}/events?since=0");
    stream.write_all(place.head("GET", &path, "Accept: text/event-stream").as_bytes()).await?;
    let (mut wire, mut body) = (BytesMut::new(), Body::default());
    let mut in_body = false;
    while body.seen.last < last {
        wire.reserve(READ_BYTES);
        match stream.read_buf(&mut wire).await? {
            0 => return Err("the stream has ended too early".into()),
            count => body.seen.bytes += count as u64,
        }
        body.seen.newest_us = now_us();
        if !in_body && let Some(end) = memmem::find(&wire, b"\r\n\r\n") {
            if !wire.starts_with(b"HTTP/1.1 200 ") {
                return Err(String::from_utf8_lossy(&wire).into());
            }
            wire.advance(end + 4);
            in_body = true;
        }
        if in_body {
            body.chunks(&mut wire)?;
            body.blocks()?;
        }
    }
    Ok(body.seen)
}

#[derive(Default)]
struct Body {
    seen: Seen,
    text: BytesMut,
    /// How far the text was searched for the end of a block.
    searched: usize,
    /// What is left of a chunk.
    chunk: usize,
}

impl Body {
    /// Takes the text out of the chunks of HTTP.
    fn chunks(&mut self, wire: &mut BytesMut) -> Result<(), Failure> {
        while !wire.is_empty() {
            if 0 < self.chunk {
                let count = self.chunk.min(wire.len());
                self.text.extend_from_slice(&wire.split_to(count));
                self.chunk -= count;
                continue;
            }
            // The line end of the chunk before belongs to the line that tells the length of the next one.
            let from = if wire.starts_with(b"\r\n") { 2 } else { 0 };
            let Some(line) = memmem::find(&wire[from..], b"\r\n") else { return Ok(()) };
            let length = std::str::from_utf8(&wire[from..from + line])?;
            self.chunk = usize::from_str_radix(length, 16)?;
            wire.advance(from + line + 2);
            if self.chunk == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<(), Failure> {
        while let Some(end) = memmem::find(&self.text[self.searched..], b"\n\n") {
            let block = self.text.split_to(self.searched + end + 2);
            self.searched = 0;
            if let Some(id) = block.strip_prefix(b"id: ") {
                self.seen.event(number(id))?;
            }
        }
        self.searched = self.text.len().saturating_sub(1);
        Ok(())
    }
}
