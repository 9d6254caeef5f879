//! Tokenrail's own vocabulary: the dialects of its WebSocket, and events over HTTP.

mod agent;
pub(crate) mod dto;
mod events;
mod fold;
mod frame;
mod joined;
mod message;
mod packed;
mod spoken;
mod stream;
mod teller;
mod writing;

use tokenrail_application::Rendering;
use tokenrail_domain::Event;

use crate::error::{Code, FieldProblem, Problem};
use crate::fold::{Fold, Frames};
use crate::query::{Query, refused_name};

pub use dto::event_json;
pub(crate) use events::EventFold;
pub(crate) use fold::DialectFold;
pub(crate) use frame::{Piece, TextPiece};
pub(crate) use packed::{Packed, packed};
pub(crate) use teller::{Teller, Telling, Words};
pub(crate) use writing::EventWriting;
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

    /// Gives a fold events, those together that share a frame.
    pub(crate) fn feed<F: Fold, T: Frames<F::Vocabulary>>(self, fold: &mut F, events: &[Event], out: &mut T) {
        self.ends(fold, events, out, |_| 0);
    }

    /// The same; returns where each event ends, by the length of what was written so far.
    fn ends<F: Fold, T: Frames<F::Vocabulary>>(
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
