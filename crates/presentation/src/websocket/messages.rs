//! Reads the messages of a WebSocket client, as whole messages. All WebSockets share this code, with different size
//! limits.
//!
//! A message that is too large is rejected as soon as a frame header announces its size, before any of that frame's
//! payload is kept. actix's parser would first collect the whole frame, whatever its length, so it receives whole
//! frames only. The fragments of a message are copied into one buffer: otherwise a small fragment would keep the whole
//! chunk alive in which it arrived.

mod head;
#[cfg(test)]
mod tests;

use actix_http::ws::{CloseReason, Codec, Frame, Item, ProtocolError};
use actix_web::dev;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::codec::Decoder as _;

use self::head::{Head, Kind};
use crate::api::{Api, LargeRequestPermit};
use crate::waits::passed;

/// After a message of at least this size, its buffer is not kept for the next one.
const LARGE_BYTES: usize = 64 << 10;

/// A whole message, or a control frame.
#[derive(Debug)]
pub(crate) enum Message {
    /// Text, which is UTF-8.
    Text(Bytes),
    Binary(Bytes),
    Ping(Bytes),
    Pong,
    Close(Option<CloseReason>),
}

/// Why nothing more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    TooLarge,
    /// The message needs room for large requests, and there is none.
    NoRoom,
    /// The rest of the message did not arrive in time.
    TooSlow,
    NotUtf8,
    Protocol,
    /// The client has disconnected.
    Gone,
}

/// Reads the messages of one connection.
pub(crate) struct Messages {
    api: Api,
    payload: dev::Payload,
    codec: Codec,
    bytes_max: usize,
    /// Bytes that have arrived and are not parsed yet: an incomplete frame, or what arrived together with the end of a
    /// frame.
    waiting: BytesMut,
    /// The fragments of a message that have arrived.
    message: BytesMut,
    is_text: bool,
    room: Option<(LargeRequestPermit, usize)>,
    /// When the first bytes of the incomplete message arrived.
    began: Option<Instant>,
    alive: bool,
}

impl Messages {
    /// Reads messages of at most `bytes_max` bytes, in any number of fragments. The part of a message above
    /// `limits.request_bytes` needs room, which all large requests share.
    pub(crate) fn new(api: Api, payload: dev::Payload, bytes_max: usize) -> Self {
        Self {
            api,
            payload,
            codec: Codec::new().max_size(bytes_max),
            bytes_max,
            waiting: BytesMut::new(),
            message: BytesMut::new(),
            is_text: false,
            room: None,
            began: None,
            alive: false,
        }
    }

    /// Whether any bytes have arrived since the last call.
    pub(crate) fn was_alive(&mut self) -> bool {
        std::mem::take(&mut self.alive)
    }

    /// Frees the room that the previous message took. Call it when the message was handled.
    pub(crate) fn clear(&mut self) {
        self.room = None;
    }

    /// The next message. May be dropped at any await.
    ///
    /// # Errors
    /// [`Broken`]: the connection cannot be used any more.
    pub(crate) async fn next(&mut self) -> Result<Message, Broken> {
        loop {
            if let Some(message) = self.read()? {
                return Ok(message);
            }
            let due = self.due();
            let chunk = tokio::select! {
                biased;
                chunk = self.payload.next() => chunk,
                () = passed(due) => return Err(Broken::TooSlow),
            };
            let Some(Ok(chunk)) = chunk else { return Err(Broken::Gone) };
            self.alive = true;
            self.waiting.extend_from_slice(&chunk);
        }
    }

    /// When the rest of an incomplete message must have arrived. As for an HTTP body, the client has
    /// `limits.body_timeout_s` for each `limits.request_bytes`.
    fn due(&mut self) -> Option<Instant> {
        if self.held() == 0 {
            self.began = None;
            return None;
        }
        let began = *self.began.get_or_insert_with(Instant::now);
        let config = self.api.config();
        let parts = 1 + self.held() / config.request_bytes.max(1);
        Some(began + config.body_timeout.saturating_mul(u32::try_from(parts).unwrap_or(u32::MAX)))
    }

    fn held(&self) -> usize {
        self.waiting.len() + self.message.len()
    }

    /// A message from the bytes that have arrived. `None` if more bytes must arrive first.
    fn read(&mut self) -> Result<Option<Message>, Broken> {
        while let Some(frame) = self.frame()? {
            let message = match frame {
                Frame::Text(text) => whole_text(text)?,
                Frame::Binary(bytes) => Message::Binary(bytes),
                Frame::Ping(payload) => Message::Ping(payload),
                Frame::Pong(_) => Message::Pong,
                Frame::Close(reason) => Message::Close(reason),
                Frame::Continuation(item) => match self.join(item)? {
                    Some(message) => message,
                    None => continue,
                },
            };
            // The next message has its own time.
            if self.message.is_empty() {
                self.began = None;
            }
            self.let_go(&message);
            return Ok(Some(message));
        }
        Ok(None)
    }

    /// Replaces the buffer if it is empty or was large. Otherwise, the rest of it would keep all of its memory alive
    /// for the life of the connection.
    fn let_go(&mut self, message: &Message) {
        let (Message::Text(bytes) | Message::Binary(bytes)) = message else { return };
        if self.waiting.is_empty() || LARGE_BYTES <= bytes.len() {
            self.waiting = BytesMut::from(&self.waiting[..]);
        }
    }

    fn frame(&mut self) -> Result<Option<Frame>, Broken> {
        if let Some(head) = Head::of(&self.waiting) {
            let of_message = head.length.saturating_add(self.message.len() as u64);
            match head.kind {
                Kind::Control if head::CONTROL_BYTES < head.length => return Err(Broken::Protocol),
                Kind::Data if (self.bytes_max as u64) < of_message => return Err(Broken::TooLarge),
                Kind::Control | Kind::Data => {}
            }
            self.make_room()?;
            if (self.waiting.len() as u64) < head.bytes as u64 + head.length {
                return Ok(None);
            }
        }
        // Without a valid head, the codec waits for more bytes, or returns an error if the head violates the protocol.
        self.codec.decode(&mut self.waiting).map_err(Broken::from)
    }

    fn join(&mut self, item: Item) -> Result<Option<Message>, Broken> {
        let (piece, is_last) = match item {
            Item::FirstText(piece) => {
                self.is_text = true;
                (piece, false)
            }
            Item::FirstBinary(piece) => {
                self.is_text = false;
                (piece, false)
            }
            Item::Continue(piece) => (piece, false),
            Item::Last(piece) => (piece, true),
        };
        self.message.extend_from_slice(&piece);
        self.make_room()?;
        if !is_last {
            return Ok(None);
        }
        let message = std::mem::take(&mut self.message).freeze();
        if self.is_text { whole_text(message).map(Some) } else { Ok(Some(Message::Binary(message))) }
    }

    /// Takes room for the bytes that are held. Every connection may hold `limits.request_bytes` without it.
    fn make_room(&mut self) -> Result<(), Broken> {
        let step = self.api.config().request_bytes;
        let has = self.room.as_ref().map_or(0, |(_, has)| *has);
        let missing = self.held().saturating_sub(step.saturating_add(has));
        if missing == 0 {
            return Ok(());
        }
        let more = missing.max(step);
        let new = self.api.large_request_permit(more).map_err(|_| Broken::NoRoom)?;
        match &mut self.room {
            Some((room, has)) => {
                room.grow(new);
                *has += more;
            }
            None => self.room = Some((new, more)),
        }
        Ok(())
    }
}

fn whole_text(text: Bytes) -> Result<Message, Broken> {
    match std::str::from_utf8(&text) {
        Ok(_) => Ok(Message::Text(text)),
        Err(_) => Err(Broken::NotUtf8),
    }
}

impl From<ProtocolError> for Broken {
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Overflow => Self::TooLarge,
            _ => Self::Protocol,
        }
    }
}
