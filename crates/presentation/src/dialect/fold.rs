//! The dialects that must know what came before: each is a fold of the journal, and is fed from the first event of a
//! turn. So the frames of an event are the same for everybody, wherever he begins to listen.

use bytes::Bytes;
use serde::Serialize;
use tokenrail_application::RenderingKey;
use tokenrail_domain::{AgentId, Assembler, Event, MessageOrdinal, Timestamp, TurnNumber, message_id};

use super::Dialect;
use super::message::MessageFold;
use super::stream::StreamFold;
use crate::dto::{Envelope, IdText, MessageChunk, StreamText};
use crate::frames::{self, FrameWriter};

/// One listener's state of a dialect.
#[derive(Debug)]
pub(crate) enum Fold {
    Message(MessageFold),
    Stream(StreamFold),
}

/// Where frames go.
pub(crate) trait Sink {
    /// Takes a frame that an event of that time has caused.
    fn frame<P: Serialize>(&mut self, at: Timestamp, agent: IdText, kind: &'static str, payload: P);

    /// Takes text that may be joined to the text before it.
    fn text(&mut self, said: Said<'_>)
    where
        Self: Sized,
    {
        said.tell(false, self);
    }
}

/// Text of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
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

/// What goes out to a listener who lets text be collected.
#[derive(Debug)]
pub(crate) enum Piece {
    Frames(Bytes),
    Text(TextPiece),
}

/// Text of one message that may be joined to more.
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

/// Takes frames, and drops them.
pub(crate) struct Silence;

impl Fold {
    /// The fold of a dialect at the beginning of a turn; none where it needs none.
    pub(crate) fn new(dialect: Dialect, agent: AgentId) -> Option<Self> {
        match dialect {
            Dialect::Agent => None,
            Dialect::Message => Some(Self::Message(MessageFold::new(agent))),
            Dialect::Stream => Some(Self::Stream(StreamFold::new(agent))),
        }
    }

    /// The number of its renderings: see [`Writing`](super::Writing), which has the others.
    pub(crate) fn key(&self, packed: bool) -> RenderingKey {
        RenderingKey(match (self, packed) {
            (Self::Message(_), false) => 9,
            (Self::Stream(_), false) => 10,
            (Self::Message(_), true) => 11,
            (Self::Stream(_), true) => 12,
        })
    }

    /// Takes in the next event, and gives its frames.
    pub(crate) fn event<S: Sink>(&mut self, event: &Event, out: &mut S) {
        match self {
            Self::Message(fold) => fold.event(event, out),
            Self::Stream(fold) => fold.event(event, out),
        }
    }

    /// Whether who joins in the middle of a message is told what it has said so far.
    pub(crate) fn tells_what_was_said(&self) -> bool {
        matches!(self, Self::Message(_))
    }

    /// Gives what the open messages have said up to the event `last`.
    pub(crate) fn so_far<S: Sink>(&self, open: &Assembler, last: &Event, out: &mut S) {
        if let Self::Message(fold) = self {
            fold.so_far(open, last, out);
        }
    }
}

impl Sink for FrameWriter {
    fn frame<P: Serialize>(&mut self, at: Timestamp, agent: IdText, kind: &'static str, payload: P) {
        self.json(&Envelope { kind, payload, timestamp: at.0, session_id: Some(agent) });
    }
}

impl Sink for Silence {
    fn frame<P: Serialize>(&mut self, _: Timestamp, _: IdText, _: &'static str, _: P) {}
}

impl Sink for Vec<Piece> {
    fn frame<P: Serialize>(&mut self, at: Timestamp, agent: IdText, kind: &'static str, payload: P) {
        let frame = Envelope { kind, payload, timestamp: at.0, session_id: Some(agent) };
        self.push(Piece::Frames(frames::json(&frame)));
    }

    fn text(&mut self, said: Said<'_>) {
        self.push(Piece::Text(said.into()));
    }
}

impl Said<'_> {
    /// Gives its frame; `more` where the text of the event goes on in the next one.
    fn tell<S: Sink>(&self, more: bool, out: &mut S) {
        let Self { agent, turn, message, sequence, at, text, frame } = *self;
        let (agent_id, message_id) = (agent.into(), IdText(message_id(agent, turn, message)));
        match frame {
            TextFrame::Chunk => {
                let payload = MessageChunk { agent_id, sequence, message_id, content: text.into() };
                out.frame(at, agent_id, "message.chunk", payload);
            }
            TextFrame::Stream => {
                let payload = StreamText { agent_id, sequence, message_id, text, more };
                out.frame(at, agent_id, "agent:stream", payload);
            }
        }
    }
}

impl From<Said<'_>> for TextPiece {
    fn from(said: Said<'_>) -> Self {
        let Said { agent, turn, message, sequence, at, text, frame } = said;
        Self { agent, turn, message, sequence, at, text: text.to_owned(), frame }
    }
}

impl TextPiece {
    /// Joins what the same message says next; gives it back where it is another message.
    pub(crate) fn join(&mut self, next: Self) -> Option<Self> {
        let same = (self.agent, self.turn, self.message) == (next.agent, next.turn, next.message);
        if !same {
            return Some(next);
        }
        self.text.push_str(&next.text);
        (self.sequence, self.at) = (next.sequence, next.at);
        None
    }

    /// Splits off the beginning, as a frame of its own.
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

    pub(super) fn tell<S: Sink>(&self, out: &mut S) {
        self.said(&self.text).tell(false, out);
    }

    fn said<'a>(&self, text: &'a str) -> Said<'a> {
        let Self { agent, turn, message, sequence, at, frame, .. } = *self;
        Said { agent, turn, message, sequence, at, text, frame }
    }
}
