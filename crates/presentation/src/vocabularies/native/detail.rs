//! How much of each event a client gets, and how events are fed to a fold for that.

use tokenrail_application::Rendering;
use tokenrail_domain::Event;

use super::packed::{Packed, packed};
use crate::error::Problem;
use crate::fold::{Fold, Frames};
use crate::query::Query;

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
    pub(super) fn cut(self, events: &[Event]) -> impl Iterator<Item = Packed<'_>> {
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
    pub(super) fn feed_noting_ends<F: Fold, T: Frames<F::Vocabulary>>(
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
