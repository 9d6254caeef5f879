//! A follower that costs as little as possible: it parses the headers of frames, and the number of each event.

use bytes::{Buf as _, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::Failure;
use crate::http::Place;
use crate::machine::now_us;
use crate::seen::Seen;

/// How much to read at once.
const READ_BYTES: usize = 64 << 10;
/// How much of a frame is parsed: all of a single delta, and the numbers of a packed frame.
const LOOK_BYTES: usize = 768;

/// When to stop reading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// A turn has ended.
    TurnEnd,
    Event(u64),
    /// This many deltas have come.
    Deltas(u64),
}

impl Until {
    pub(crate) fn is_met(self, seen: &Seen) -> bool {
        match self {
            Self::TurnEnd => seen.turn_ended,
            Self::Event(last) => last <= seen.last,
            Self::Deltas(count) => count <= seen.deltas,
        }
    }
}

/// How deltas are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each in its own frame.
    Single,
    /// Consecutive deltas of one message in one frame.
    Packed,
}

impl Form {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Packed => "packed",
        }
    }

    /// The query parameter for this form. `before` is the character that joins it to the query.
    pub(crate) fn query(self, before: char) -> String {
        match self {
            Self::Single => String::new(),
            Self::Packed => format!("{before}packed=true"),
        }
    }
}

/// How a follower is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    WebSocket,
    Sse,
}

impl Way {
    pub(crate) const ALL: [Self; 2] = [Self::WebSocket, Self::Sse];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WebSocket => "WebSocket",
            Self::Sse => "SSE",
        }
    }
}

/// A WebSocket that follows one agent.
pub(crate) struct WebSocket {
    stream: TcpStream,
    buffer: BytesMut,
    /// The remaining length of a frame whose beginning was already parsed.
    skip: usize,
    ping: bool,
    pub(crate) seen: Seen,
}

impl WebSocket {
    /// Connects and subscribes to the agent's events after `since`. Returns when the server has confirmed it.
    pub(crate) async fn follow(place: &Place, agent: &str, since: u64) -> Result<Self, Failure> {
        Self::open(place, agent, since, Form::Single).await
    }

    /// As [`Self::follow`], with deltas in this form.
    pub(crate) async fn open(place: &Place, agent: &str, since: u64, form: Form) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(place.address).await?;
        stream.set_nodelay(true)?;
        let Place { address, token } = place;
        let head = format!(
            "GET /ws{} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: tokenrail.v1, bearer.{token}\r\n\r\n",
            form.query('?')
        );
        stream.write_all(head.as_bytes()).await?;
        let seen = Seen { last: since, ..Seen::default() };
        let mut socket = Self { stream, buffer: BytesMut::new(), skip: 0, ping: false, seen };
        socket.upgraded().await?;
        let wish = format!(r#"{{"type":"subscribe","payload":{{"agentId":"{agent}","since":{since}}}}}"#);
        socket.send(0x81, wish.as_bytes()).await?;
        while !socket.seen.subscribed {
            socket.read().await?;
        }
        Ok(socket)
    }

    /// Reads until the condition is met.
    pub(crate) async fn read_until(mut self, until: Until) -> Result<Seen, Failure> {
        while !until.is_met(&self.seen) {
            self.read().await?;
        }
        Ok(self.seen)
    }

    /// As [`Self::read_until`], but returns what has come if the time is up.
    pub(crate) async fn read_until_late(mut self, until: Until, late: Instant) -> Result<Seen, Failure> {
        while !until.is_met(&self.seen) {
            match timeout_at(late, self.read()).await {
                Ok(read) => read?,
                Err(_) => break,
            }
        }
        Ok(self.seen)
    }

    /// Reads until the connection ends.
    pub(crate) async fn read_to_the_end(mut self) -> Seen {
        while self.read().await.is_ok() {}
        self.seen
    }

    async fn upgraded(&mut self) -> Result<(), Failure> {
        let end = loop {
            match memmem::find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.fill().await?,
            }
        };
        let head = self.buffer.split_to(end);
        if head.starts_with(b"HTTP/1.1 101 ") {
            Ok(())
        } else {
            Err(format!("no WebSocket: {}", String::from_utf8_lossy(&head)).into())
        }
    }

    async fn send(&mut self, kind: u8, payload: &[u8]) -> Result<(), Failure> {
        // A mask of zeros leaves the payload unchanged.
        let length = u8::try_from(payload.len()).ok().filter(|length| *length < 126);
        let mut frame = vec![kind, 0x80 | length.ok_or("too long")?, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        Ok(self.stream.write_all(&frame).await?)
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server has cut the connection".into()),
            count => {
                self.seen.bytes += count as u64;
                self.seen.newest_us = now_us();
                Ok(())
            }
        }
    }

    /// Reads what the server sends next.
    pub(crate) async fn read(&mut self) -> Result<(), Failure> {
        self.fill().await?;
        self.frames()?;
        if std::mem::take(&mut self.ping) {
            self.send(0x8a, b"").await?;
        }
        Ok(())
    }

    /// Handles what has come.
    fn frames(&mut self) -> Result<(), Failure> {
        loop {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skip -= skipped;
            let Some((kind, header, length)) = header(&self.buffer).filter(|_| self.skip == 0) else {
                return Ok(());
            };
            let looked_at = if self.seen.thorough { length } else { length.min(LOOK_BYTES) };
            let Some(payload) = self.buffer.get(header..header + looked_at) else { return Ok(()) };
            match kind {
                0x81 => self.seen.frame(payload, header + length)?,
                0x89 => self.ping = true,
                _ => return Err("the server has closed the connection".into()),
            }
            self.buffer.advance(header + looked_at);
            self.skip = length - looked_at;
        }
    }
}

/// The first byte, and the lengths of the header and the payload.
fn header(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let kind = *bytes.first()?;
    match *bytes.get(1)? {
        126 => Some((kind, 4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into())),
        127 => Some((kind, 10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize)),
        short => Some((kind, 2, short.into())),
    }
}
