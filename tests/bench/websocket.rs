//! A follower that costs as little as possible: it reads the headers of frames, and of each event its number.

use bytes::{Buf as _, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;
use crate::http::Place;
use crate::machine::now_us;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;
/// How much of a frame is looked at: all of a delta's.
const LOOK_BYTES: usize = 768;

const MESSAGE: &[u8] = br#"{"type":"agent:message","payload":{"agentId":""#;
const COMPLETE: &[u8] = br#"{"type":"agent:complete""#;
const SUBSCRIBED: &[u8] = br#"{"type":"subscribed""#;
const ERROR: &[u8] = br#"{"type":"error""#;
const DELTA: &[u8] = br#""eventType":"content_delta""#;
const SEQUENCE: &[u8] = br#"","sequence":"#;
const CONTENT: &[u8] = br#""content":""#;
const UUID: usize = 36;

/// When to stop reading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// A turn has ended.
    TurnEnd,
    Event(u64),
}

/// What a follower has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The number of the newest event; all before it were seen, each once.
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    pub(crate) turn_ended: bool,
    /// When the first event and the newest bytes came.
    pub(crate) first_us: Option<u64>,
    pub(crate) newest_us: u64,
    /// For each delta whose text is a time: how long ago that was when it was read, in microseconds.
    pub(crate) delays_us: Vec<u32>,
    subscribed: bool,
}

/// A WebSocket that follows one agent.
pub(crate) struct WebSocket {
    stream: TcpStream,
    buffer: BytesMut,
    /// How much is left of a frame that was looked at already.
    skip: usize,
    ping: bool,
    pub(crate) seen: Seen,
}

impl WebSocket {
    /// Connects and subscribes to the agent's events after `since`; returns when the server has said so.
    pub(crate) async fn follow(place: &Place, agent: &str, since: u64) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(place.address).await?;
        stream.set_nodelay(true)?;
        let Place { address, token } = place;
        let head = format!(
            "GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: tokenrail.v1, bearer.{token}\r\n\r\n"
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

    /// Reads until then.
    pub(crate) async fn read_until(mut self, until: Until) -> Result<Seen, Failure> {
        loop {
            match until {
                Until::TurnEnd if self.seen.turn_ended => return Ok(self.seen),
                Until::Event(last) if last <= self.seen.last => return Ok(self.seen),
                _ => self.read().await?,
            }
        }
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
        // A mask of zeros leaves the payload as it is.
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

    async fn read(&mut self) -> Result<(), Failure> {
        self.fill().await?;
        self.frames()?;
        if std::mem::take(&mut self.ping) {
            self.send(0x8a, b"").await?;
        }
        Ok(())
    }

    /// Takes in what has come.
    fn frames(&mut self) -> Result<(), Failure> {
        loop {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skip -= skipped;
            let Some((kind, header, length)) = header(&self.buffer).filter(|_| self.skip == 0) else {
                return Ok(());
            };
            let looked_at = length.min(LOOK_BYTES);
            let Some(payload) = self.buffer.get(header..header + looked_at) else { return Ok(()) };
            match kind {
                0x81 => self.seen.text(payload)?,
                0x89 => self.ping = true,
                _ => return Err("the server has closed the connection".into()),
            }
            self.buffer.advance(header + looked_at);
            self.skip = length - looked_at;
        }
    }
}

/// The first byte, the length of the header and that of the payload.
fn header(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let kind = *bytes.first()?;
    match *bytes.get(1)? {
        126 => Some((kind, 4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into())),
        127 => Some((kind, 10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize)),
        short => Some((kind, 2, short.into())),
    }
}

impl Seen {
    fn text(&mut self, payload: &[u8]) -> Result<(), Failure> {
        if let Some(rest) = payload.strip_prefix(MESSAGE) {
            let rest = rest.get(UUID..).and_then(|rest| rest.strip_prefix(SEQUENCE));
            let sequence = number(rest.ok_or("a message without its number")?);
            self.event(sequence)?;
            self.delay(payload);
        } else if payload.starts_with(COMPLETE) {
            self.turn_ended = true;
        } else if payload.starts_with(SUBSCRIBED) {
            self.subscribed = true;
        } else if payload.starts_with(ERROR) {
            return Err(String::from_utf8_lossy(payload).into());
        }
        Ok(())
    }

    /// The next event has come.
    pub(crate) fn event(&mut self, sequence: u64) -> Result<(), Failure> {
        if sequence != self.last + 1 {
            return Err(format!("lost or doubled: {sequence} came after {}", self.last).into());
        }
        self.last = sequence;
        self.first_us.get_or_insert(self.newest_us);
        Ok(())
    }

    fn delay(&mut self, payload: &[u8]) {
        // Other texts are no times: those begin with the digits of this clock.
        if self.delays_us.capacity() == 0 || memmem::find(payload, DELTA).is_none() {
            return;
        }
        if let Some(content) = memmem::find(payload, CONTENT) {
            let said_us = number(&payload[content + CONTENT.len()..]);
            self.delays_us.push(self.newest_us.saturating_sub(said_us) as u32);
        }
    }
}

/// The number with which the bytes begin.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
