//! The vocabularies in which clients hear events. A dialect is one pure file: events in, frames out; no clock, no
//! chance, no I/O. So a frame is the same bytes live, on replay and after a restart.

mod agent;
pub(crate) mod ai_sdk;
mod approvals;
mod blocks;
mod event_stream;
mod fold;
mod joined;
mod kelpie;
mod letta;
mod letta_stream;
mod message;
mod packed;
mod spoken;
mod stream;
mod teller;

use bytes::Bytes;
use tokenrail_application::{Page, Rendering, RenderingKey};
use tokenrail_domain::{AgentId, Event};

pub(crate) use blocks::BlockWriter;
pub(crate) use letta::{Ending, LettaFold, LettaFrame, REASON_EVENTS, RunId, stop_reason};
pub(crate) use letta_stream::{LettaFormat, LettaStreamFold};

use crate::error::{Code, FieldProblem, Problem};
use crate::frames::{self, FrameWriter};
use crate::query::Query;

pub(crate) use fold::{Fold, Piece, TextPiece};
pub(crate) use packed::{Packed, packed};
pub(crate) use teller::{Folded, Teller, Telling, Words};

/// A vocabulary of WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Dialect {
    #[default]
    Agent,
    Message,
    Stream,
}

impl Dialect {
    const ALL: [Self; 3] = [Self::Agent, Self::Message, Self::Stream];

    fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Message => "message",
            Self::Stream => "stream",
        }
    }

    /// The dialect of that name.
    ///
    /// # Errors
    /// [`Problem`], with the name and those that are known.
    pub(crate) fn named(name: &str) -> Result<Self, Problem> {
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        dialect.ok_or_else(|| unknown(name, &Self::ALL.map(Self::as_str)))
    }

    /// Events over HTTP are told in one dialect alone, which a client may name.
    ///
    /// # Errors
    /// [`Problem`], with the name and the one that is known.
    pub(crate) fn over_http(query: &Query) -> Result<(), Problem> {
        match query.get("dialect") {
            Some(name) if name != Self::Agent.as_str() => Err(unknown(name, &[Self::Agent.as_str()])),
            _ => Ok(()),
        }
    }
}

/// Bytes of a name that is told to who has sent it.
const NAME_BYTES: usize = 64;

/// A name that a client has sent, for a sentence that refuses it. What may be anything is not sent back.
pub(crate) fn refused_name(name: &str) -> String {
    let is_name = |byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_name) {
        format!("\"{name}\"")
    } else {
        "this".to_owned()
    }
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let (name, known) = (refused_name(name), known.join(", "));
    let detail = format!("{name} is none of: {known}");
    let error = FieldProblem { pointer: None, parameter: Some("dialect"), detail };
    let sentence = format!("{name} is no dialect that is known here; known dialects: {known}");
    Problem { errors: vec![error], ..Problem::new(Code::DialectUnknown, sentence) }
}

/// The ways in which a batch is written whatever came before it: one number each, below 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writing {
    pub(crate) form: WritingForm,
    pub(crate) detail: Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritingForm {
    /// WebSocket frames of the dialect `agent`, ready for the wire.
    Frames,
    /// Blocks of an event stream.
    EventStream,
    /// The same without names, as `EventSource.onmessage` hears them.
    Unnamed,
}

/// How much of each event a client gets, and in how many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Plain,
    /// With the raw lines.
    Raw,
    /// Consecutive deltas of one part of a message share a frame.
    Packed,
}

impl Detail {
    /// What the query of a request wishes.
    ///
    /// # Errors
    /// [`Problem`], which names the parameter.
    pub(crate) fn wished(query: &Query) -> Result<Self, Problem> {
        Ok(Self::of(query.flag("raw")?, query.flag("packed")?))
    }

    /// What a client wishes. Raw lines belong to one event each, so where they are wished for nothing is packed.
    pub(crate) fn of(raw: bool, packed: bool) -> Self {
        match (raw, packed) {
            (true, _) => Self::Raw,
            (false, true) => Self::Packed,
            (false, false) => Self::Plain,
        }
    }

    /// Splits events into those that share a frame.
    pub(crate) fn cut(self, events: &[Event]) -> impl Iterator<Item = Packed<'_>> {
        let (together, alone) = match self {
            Self::Packed => (events, &[][..]),
            Self::Plain | Self::Raw => (&[][..], events),
        };
        packed(together).chain(alone.iter().map(Packed::Event))
    }

    pub(crate) fn has_raw(self) -> bool {
        self == Self::Raw
    }

    /// Calls `write` once for each frame, which returns the bytes written so far. Returns where each event ends.
    fn ends(self, events: &[Event], mut write: impl FnMut(Packed<'_>) -> usize) -> Vec<usize> {
        let mut ends = Vec::with_capacity(events.len());
        for told in self.cut(events) {
            let end = write(told);
            ends.resize(ends.len() + told.len() - 1, Rendering::GOES_ON);
            ends.push(end);
        }
        ends
    }
}

impl Writing {
    fn key(self) -> RenderingKey {
        let form = match self.form {
            WritingForm::Frames => 0,
            WritingForm::EventStream => 3,
            WritingForm::Unnamed => 6,
        };
        RenderingKey(form + self.detail as u8)
    }

    /// The page as bytes. The first reader who asks renders the batch for all of them. A reader whose cursor lies inside a
    /// packed frame gets a rendering of its own.
    pub(crate) fn of(self, agent: AgentId, page: &Page) -> Bytes {
        let rendering = page.batch.rendering(self.key(), |events| self.render(agent, events));
        rendering.from(page.skip).unwrap_or_else(|| self.render(agent, page.events()).bytes)
    }

    fn render(self, agent: AgentId, events: &[Event]) -> Rendering {
        let Self { form, detail } = self;
        match form {
            WritingForm::Frames => {
                let mut out = FrameWriter::default();
                let ends = detail.ends(events, |told| {
                    agent::frames(agent, told, detail.has_raw(), &mut out);
                    out.len()
                });
                Rendering { bytes: out.into_bytes(), ends }
            }
            WritingForm::EventStream | WritingForm::Unnamed => {
                let mut out = Vec::new();
                let named = form == WritingForm::EventStream;
                let ends = detail.ends(events, |told| {
                    event_stream::block(agent, told, detail.has_raw(), named, &mut out);
                    out.len()
                });
                Rendering { bytes: out.into(), ends }
            }
        }
    }
}

/// The frames of each event of a page in the dialect `agent`, as a WebSocket client gets them.
pub fn agent_frames(agent: AgentId, page: &Page) -> Vec<Bytes> {
    let writing = Writing { form: WritingForm::Frames, detail: Detail::Plain };
    let Rendering { bytes, ends } =
        page.batch.rendering(writing.key(), |events| writing.render(agent, events));
    let begin = |index: usize| if index == 0 { 0 } else { ends[index - 1] };
    (page.skip..ends.len()).map(|index| bytes.slice(begin(index)..ends[index])).collect()
}

/// The frames of a page in the dialect `agent`, as a WebSocket client that asks for packed deltas reads them.
pub fn packed_frames(agent: AgentId, page: &Page) -> Vec<String> {
    let writing = Writing { form: WritingForm::Frames, detail: Detail::Packed };
    let frames = writing.of(agent, page);
    frames::payloads(&frames).map(|json| String::from_utf8_lossy(json).into_owned()).collect()
}

#[cfg(test)]
mod tests;
