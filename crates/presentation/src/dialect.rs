//! The vocabularies in which clients hear events. A dialect is one pure file: events in, frames out; no clock, no
//! chance, no I/O. So a frame is the same bytes live, on replay and after a restart.

mod agent;
pub(crate) mod ai_sdk;
mod approvals;
mod blocks;
mod event_stream;
mod fold;
mod kelpie;
mod letta;
mod letta_stream;
mod message;
mod spoken;
mod stream;
mod teller;

use bytes::Bytes;
use tokenrail_application::{Batch, Page, Rendering, RenderingKey};
use tokenrail_domain::AgentId;

pub(crate) use blocks::BlockWriter;
pub(crate) use letta::{Ending, LettaFold, LettaFrame, REASON_EVENTS, RunId, stop_reason};
pub(crate) use letta_stream::{LettaFormat, LettaStreamFold};

use crate::error::{Code, FieldProblem, Problem};
use crate::frames::FrameWriter;
use crate::query::Query;

pub(crate) use fold::{Fold, Piece, TextPiece};
pub(crate) use teller::{Folded, Teller, Words};

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

/// The ways in which a batch is written whatever came before it: one number each, below 4, or 6 and 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writing {
    pub(crate) form: WritingForm,
    /// With the raw lines.
    pub(crate) raw: bool,
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

impl Writing {
    fn key(self) -> RenderingKey {
        let form = match self.form {
            WritingForm::Frames => 0,
            WritingForm::EventStream => 2,
            WritingForm::Unnamed => 6,
        };
        RenderingKey(form + u8::from(self.raw))
    }

    /// The batch, written by the first reader who asks for it, for all of them.
    pub(crate) fn of(self, agent: AgentId, batch: &Batch) -> &Rendering {
        let Self { form, raw } = self;
        batch.rendering(self.key(), |events| {
            let mut ends = Vec::with_capacity(events.len());
            let bytes = match form {
                WritingForm::Frames => {
                    let mut out = FrameWriter::default();
                    for event in events {
                        agent::frames(agent, event, raw, &mut out);
                        ends.push(out.len());
                    }
                    out.into_bytes()
                }
                WritingForm::EventStream | WritingForm::Unnamed => {
                    let mut out = Vec::new();
                    let named = form == WritingForm::EventStream;
                    for event in events {
                        event_stream::block(agent, event, raw, named, &mut out);
                        ends.push(out.len());
                    }
                    out.into()
                }
            };
            Rendering { bytes, ends }
        })
    }
}

/// The frames of each event of a page in the dialect `agent`, as a WebSocket client gets them.
pub fn agent_frames(agent: AgentId, page: &Page) -> Vec<Bytes> {
    let form = WritingForm::Frames;
    let Rendering { bytes, ends } = Writing { form, raw: false }.of(agent, &page.batch);
    let begin = |index: usize| if index == 0 { 0 } else { ends[index - 1] };
    (page.skip..ends.len()).map(|index| bytes.slice(begin(index)..ends[index])).collect()
}

#[cfg(test)]
mod tests;
