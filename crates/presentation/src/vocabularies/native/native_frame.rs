//! The frames of the WebSocket dialects. `transport` writes them.

use bytes::Bytes;
use serde::Serialize;
use tokenrail_domain::{AgentId, MessageOrdinal, Timestamp, TurnNumber, message_id};

use super::dto::frames::Envelope;
use super::dto::message_frames::MessageChunk;
use super::dto::stream_frames::StreamText;
use crate::fold::{Frames, Vocabulary};
use crate::frames::FrameWriter;
use crate::json::IdText;

/// The vocabulary of the WebSocket dialects.
#[derive(Debug)]
pub(crate) enum Native {}

impl Vocabulary for Native {
    type Frame<'f> = NativeFrame<'f>;
}

/// A frame of a WebSocket dialect.
pub(crate) enum NativeFrame<'f> {
    /// Text that a transport may join to the text before it.
    Text(SpokenText<'f>),
    Whole {
        /// The time of the event that caused the frame.
        at: Timestamp,
        /// The conversation, in the dialects that name it.
        session: Option<IdText>,
        kind: &'static str,
        payload: &'f dyn Payload,
    },
}

/// The payload of a frame.
pub(crate) trait Payload {
    fn write(&self, at: Timestamp, session: Option<IdText>, kind: &'static str, out: &mut FrameWriter);

    /// Writes a list of the type and the payload, after `tag`.
    fn write_pair(&self, tag: &[u8], kind: &'static str, out: &mut FrameWriter);
}

impl<P: Serialize> Payload for P {
    fn write(&self, at: Timestamp, session: Option<IdText>, kind: &'static str, out: &mut FrameWriter) {
        write(out, at, session, kind, self);
    }

    fn write_pair(&self, tag: &[u8], kind: &'static str, out: &mut FrameWriter) {
        out.tagged(tag, &(kind, self));
    }
}

/// Sends a frame of a dialect that names the conversation.
pub(super) fn tell<P: Serialize>(
    out: &mut impl Frames<Native>,
    at: Timestamp,
    agent: IdText,
    kind: &'static str,
    payload: P,
) {
    out.frame(NativeFrame::Whole { at, session: Some(agent), kind, payload: &payload });
}

fn write<P: Serialize>(
    out: &mut FrameWriter,
    at: Timestamp,
    session_id: Option<IdText>,
    kind: &'static str,
    payload: &P,
) {
    out.json(&Envelope { kind, payload, timestamp: at.0, session_id });
}

/// Text of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpokenText<'a> {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    pub(crate) message: MessageOrdinal,
    pub(crate) sequence: u64,
    pub(crate) at: Timestamp,
    pub(crate) text: &'a str,
    pub(crate) frame: TextFrame,
}

/// The kind of frame that carries text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFrame {
    /// `message.chunk`
    Chunk,
    /// `agent:stream`
    Stream,
}

/// Output for a follower whose text is collected.
#[derive(Debug)]
pub(crate) enum Piece {
    Frames(Bytes),
    Text(TextPiece),
}

/// Text of one message, to which more text may be joined.
#[derive(Debug)]
pub(crate) struct TextPiece {
    agent: AgentId,
    turn: TurnNumber,
    message: MessageOrdinal,
    sequence: u64,
    at: Timestamp,
    pub(crate) text: String,
    frame: TextFrame,
}

impl SpokenText<'_> {
    /// Sends the frame. `more` is true if the text of the event continues in the next frame.
    pub(super) fn tell(&self, more: bool, out: &mut FrameWriter) {
        let Self { agent, turn, message, sequence, at, text, frame } = *self;
        let (agent_id, message_id) = (agent.into(), IdText(message_id(agent, turn, message)));
        match frame {
            TextFrame::Chunk => {
                let payload = MessageChunk { agent_id, sequence, message_id, content: text.into() };
                write(out, at, Some(agent_id), "message.chunk", &payload);
            }
            TextFrame::Stream => {
                let payload = StreamText { agent_id, sequence, message_id, text, more };
                write(out, at, Some(agent_id), "agent:stream", &payload);
            }
        }
    }
}

impl From<SpokenText<'_>> for TextPiece {
    fn from(said: SpokenText<'_>) -> Self {
        let SpokenText { agent, turn, message, sequence, at, text, frame } = said;
        Self { agent, turn, message, sequence, at, text: text.to_owned(), frame }
    }
}

impl TextPiece {
    /// Joins the next text of the same message. Returns `next` if it belongs to another message.
    pub(crate) fn join(&mut self, next: Self) -> Option<Self> {
        let same = (self.agent, self.turn, self.message) == (next.agent, next.turn, next.message);
        if !same {
            return Some(next);
        }
        self.text.push_str(&next.text);
        (self.sequence, self.at) = (next.sequence, next.at);
        None
    }

    /// Splits off the first `bytes` bytes as a frame of their own.
    pub(crate) fn split(&mut self, bytes: usize) -> Bytes {
        let rest = self.text.split_off(bytes);
        let begin = std::mem::replace(&mut self.text, rest);
        let mut out = FrameWriter::default();
        self.said(&begin).tell(true, &mut out);
        out.into_bytes()
    }

    pub(crate) fn into_frame(self) -> Bytes {
        let mut out = FrameWriter::default();
        self.tell(&mut out);
        out.into_bytes()
    }

    pub(super) fn tell(&self, out: &mut FrameWriter) {
        self.said(&self.text).tell(false, out);
    }

    fn said<'a>(&self, text: &'a str) -> SpokenText<'a> {
        let Self { agent, turn, message, sequence, at, frame, .. } = *self;
        SpokenText { agent, turn, message, sequence, at, text, frame }
    }
}
