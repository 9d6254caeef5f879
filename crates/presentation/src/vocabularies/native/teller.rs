//! What one subscription is told: the frames of its dialect, from its cursor on.

use bytes::Bytes;
use tokenrail_application::{Page, Rendering};
use tokenrail_domain::{Assembler, Event, Sequence};

use super::fold::DialectFold;
use super::frame::Piece;
use super::joined::Joined;
use super::writing::frames;
use crate::fold::{Begins, Fold, skip, written};

/// What one subscription is told.
#[derive(Debug)]
pub(crate) struct Teller {
    fold: DialectFold,
    /// Events up to this one are taken in, and not told.
    after: Sequence,
    /// What the open messages have said up to there, for a follower that begins in the middle.
    joining: Option<Assembler>,
    telling: Telling,
}

/// How text is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Plain,
    /// What one message says without a break, in one frame.
    Packed,
    /// Piece by piece, to be collected.
    Pieces,
}

/// What is told of one page.
#[derive(Debug)]
pub(crate) enum Words {
    Frames(Bytes),
    Pieces(Vec<Piece>),
}

impl Teller {
    /// Tells what comes after `after`; `joins` says that the follower begins there for the first time.
    pub(crate) fn new(fold: DialectFold, after: Sequence, joins: bool, telling: Telling) -> Self {
        let joining = (joins && fold.tells_what_was_said()).then(Assembler::default);
        // What a fold must take in before is not told.
        let after = if fold.begins() == Begins::WithTurn { after } else { Sequence::START };
        Self { fold, after, joining, telling }
    }

    /// The number up to which events are known to the follower, or nothing to it.
    pub(crate) fn after(&self) -> Sequence {
        self.after
    }

    /// What to say of a page; the one after the page before, or the first of a turn.
    pub(crate) fn tell(&mut self, page: &Page) -> Words {
        let events = page.events();
        let (known, new) = events.split_at(events.partition_point(|event| event.sequence <= self.after));
        self.take_in(known);
        if self.telling == Telling::Pieces {
            let mut pieces = Vec::new();
            for event in new {
                self.fold.event(event, &mut pieces);
            }
            return Words::Pieces(pieces);
        }
        let packed = self.telling == Telling::Packed;
        let Some(last) = known.last() else {
            let form = u8::from(packed);
            return Words::Frames(written(&mut self.fold, form, page, |fold, events| {
                render(fold, packed, events)
            }));
        };
        let mut out = Joined::new(packed);
        if last.sequence == self.after
            && let Some(open) = self.joining.take()
        {
            self.fold.so_far(&open, last, &mut out);
        }
        out.take(&mut self.fold, new);
        Words::Frames(out.into_bytes())
    }

    fn take_in(&mut self, events: &[Event]) {
        skip(&mut self.fold, events);
        if let Some(open) = &mut self.joining {
            for event in events {
                open.record(event.sequence, &event.body);
            }
        }
    }
}

fn render(fold: &mut DialectFold, packed: bool, events: &[Event]) -> Rendering {
    if let DialectFold::Agent(fold) = fold {
        return frames(fold, events);
    }
    let mut out = Joined::new(packed);
    let ends = out.take(fold, events);
    Rendering { bytes: out.into_bytes(), ends }
}
