//! Tokenrail's own vocabulary: the dialects of its WebSocket, and events over HTTP.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`endpoints`] | the API on one screen: path, method, handler, problems |
//! | [`rest`], [`sse`], [`ws`] | its handlers: REST, event stream, WebSocket |
//! | [`mod@socket_io`] | the same events for clients of Socket.IO |
//! | [`dialects`] | the three dialects of the WebSocket, one fold each, and all of them as one fold |
//! | [`native_frame`] | the frames of the dialects |
//! | [`events`] | events over HTTP: fold and frames |
//! | [`transport`] | writes frames as bytes |
//! | [`joined`], [`mod@packed`] | consecutive text in one frame; consecutive deltas in one frame |
//! | [`writing`] | the bytes of a page, written once for all followers that want the same form |
//! | [`teller`] | the frames of one subscription |
//! | [`turn_record`], [`lineage`] | a turn as one document; the parent of each of its messages |
//! | [`export`], [`mod@import`] | an agent as one file |
//! | [`dto`] | the JSON names |

mod dialects;
pub(crate) mod dto;
pub(crate) mod endpoints;
mod events;
mod export;
mod import;
mod joined;
mod lineage;
mod native_frame;
mod packed;
pub(crate) mod rest;
pub(crate) mod socket_io;
mod sse;
mod teller;
mod transport;
mod turn_record;
mod writing;
pub(crate) mod ws;

use tokenrail_application::Rendering;
use tokenrail_domain::Event;

use crate::error::{Code, FieldProblem, Problem};
use crate::fold::{Fold, Frames};
use crate::query::{Query, refused_name};

pub(crate) use dialects::DialectFold;
pub use dto::event_json;
pub(crate) use events::EventFold;
pub(crate) use native_frame::{Piece, TextPiece};
pub(crate) use packed::{Packed, packed};
pub(crate) use teller::{PageFrames, Teller, TextMode};
pub(crate) use writing::{EventWriting, items_of_events, items_of_page};
pub use writing::{agent_frames, packed_frames, packed_items};

/// A set of WebSocket frames.
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

    /// Returns the dialect with this name.
    ///
    /// # Errors
    /// [`Problem`] with the unknown name and the known names.
    pub(crate) fn named(name: &str) -> Result<Self, Problem> {
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        dialect.ok_or_else(|| unknown(name, &Self::ALL.map(Self::as_str)))
    }

    /// Checks that a request for events over HTTP names no unsupported dialect. Over HTTP there is only one.
    ///
    /// # Errors
    /// [`Problem`] with the unknown name and the one known name.
    pub(crate) fn over_http(query: &Query) -> Result<(), Problem> {
        match query.get("dialect") {
            Some(name) if name != Self::Agent.as_str() => Err(unknown(name, &[Self::Agent.as_str()])),
            _ => Ok(()),
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let (name, known) = (refused_name(name), known.join(", "));
    let detail = format!("unknown dialect {name}; must be one of: {known}");
    let error = FieldProblem { pointer: None, parameter: Some("dialect"), detail };
    let sentence = format!("unknown dialect {name}; supported dialects: {known}");
    Problem { errors: vec![error], ..Problem::new(Code::DialectUnknown, sentence) }
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
    /// Reads the client's choice from the query of a request.
    ///
    /// # Errors
    /// [`Problem`] that names the parameter.
    pub(crate) fn wished(query: &Query) -> Result<Self, Problem> {
        Ok(Self::of(query.flag("raw")?, query.flag("packed")?))
    }

    /// The detail that a client asks for. Raw lines belong to one event each, so a request for raw lines disables
    /// packing.
    pub(crate) fn of(raw: bool, packed: bool) -> Self {
        match (raw, packed) {
            (true, _) => Self::Raw,
            (false, true) => Self::Packed,
            (false, false) => Self::Plain,
        }
    }

    /// Splits events into groups that share a frame.
    fn cut(self, events: &[Event]) -> impl Iterator<Item = Packed<'_>> {
        let (together, alone) = match self {
            Self::Packed => (events, &[][..]),
            Self::Plain | Self::Raw => (&[][..], events),
        };
        packed(together).chain(alone.iter().map(Packed::Event))
    }

    pub(crate) fn has_raw(self) -> bool {
        self == Self::Raw
    }

    /// Feeds events to a fold. Deltas that share a frame are fed together.
    pub(crate) fn feed<F: Fold, T: Frames<F::Vocabulary>>(self, fold: &mut F, events: &[Event], out: &mut T) {
        self.feed_noting_ends(fold, events, out, |_| 0);
    }

    /// Like [`Detail::feed`]. Returns where each event ends, as the length of the output at that point.
    fn feed_noting_ends<F: Fold, T: Frames<F::Vocabulary>>(
        self,
        fold: &mut F,
        events: &[Event],
        out: &mut T,
        length: impl Fn(&T) -> usize,
    ) -> Vec<usize> {
        let mut ends = Vec::with_capacity(events.len());
        for told in self.cut(events) {
            match told {
                Packed::Event(event) => fold.event(event, out),
                Packed::Deltas(run) => fold.deltas(run, out),
            }
            ends.resize(ends.len() + told.len() - 1, Rendering::GOES_ON);
            ends.push(length(out));
        }
        ends
    }
}

#[cfg(test)]
mod tests;
