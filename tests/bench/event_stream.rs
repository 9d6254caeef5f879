//! A reader of server-sent events that costs as little as possible.

use bytes::{Buf as _, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;
use crate::http::Place;
use crate::machine::now_us;
use crate::seen::Seen;
use crate::websocket::{Form, Until};

const READ_BYTES: usize = 64 << 10;

/// An event stream that follows one agent.
pub(crate) struct EventStream {
    stream: TcpStream,
    wire: BytesMut,
    in_body: bool,
    body: Body,
}

impl EventStream {
    /// Requests the agent's events from the first one on. Returns when the server has begun to answer.
    pub(crate) async fn follow(place: &Place, agent: &str, form: Form) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(place.address).await?;
        let path = format!("/api/agents/{agent}/events?since=0{}", form.query('&'));
        stream.write_all(place.head("GET", &path, "Accept: text/event-stream").as_bytes()).await?;
        let mut opened = Self { stream, wire: BytesMut::new(), in_body: false, body: Body::default() };
        while !opened.in_body {
            opened.read().await?;
        }
        Ok(opened)
    }

    pub(crate) fn seen(&mut self) -> &mut Seen {
        &mut self.body.seen
    }

    /// Reads until the condition is met.
    pub(crate) async fn read_until(mut self, until: Until) -> Result<Seen, Failure> {
        while !until.is_met(&self.body.seen) {
            self.read().await?;
        }
        Ok(self.body.seen)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        let Self { stream, wire, in_body, body } = self;
        wire.reserve(READ_BYTES);
        match stream.read_buf(wire).await? {
            0 => return Err("the stream has ended too early".into()),
            count => body.seen.bytes += count as u64,
        }
        body.seen.newest_us = now_us();
        if !*in_body && let Some(end) = memmem::find(wire, b"\r\n\r\n") {
            if !wire.starts_with(b"HTTP/1.1 200 ") {
                return Err(String::from_utf8_lossy(wire).into());
            }
            wire.advance(end + 4);
            *in_body = true;
        }
        if *in_body {
            body.chunks(wire)?;
            body.blocks()?;
        }
        Ok(())
    }
}

/// Follows an ended agent after its newest event. Returns the stream after the server has said that it is open.
pub(crate) async fn follow(place: &Place, agent: &str, since: u64) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(place.address).await?;
    let path = format!("/api/agents/{agent}/events?keep=true&since={since}");
    stream.write_all(place.head("GET", &path, "Accept: text/event-stream").as_bytes()).await?;
    let mut wire = BytesMut::new();
    while memmem::find(&wire, b"retry: ").is_none() {
        if stream.read_buf(&mut wire).await? == 0 {
            return Err(String::from_utf8_lossy(&wire).into());
        }
    }
    Ok(stream)
}

#[derive(Default)]
struct Body {
    seen: Seen,
    text: BytesMut,
    /// How much of the text was already searched for the end of a block.
    searched: usize,
    /// The remaining length of a chunk.
    chunk: usize,
}

impl Body {
    /// Extracts the text from the chunks of HTTP.
    fn chunks(&mut self, wire: &mut BytesMut) -> Result<(), Failure> {
        while !wire.is_empty() {
            if 0 < self.chunk {
                let count = self.chunk.min(wire.len());
                self.text.extend_from_slice(&wire.split_to(count));
                self.chunk -= count;
                continue;
            }
            // The line break after a chunk comes before the line with the length of the next one.
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
            self.seen.block(&block)?;
        }
        self.searched = self.text.len().saturating_sub(1);
        Ok(())
    }
}
