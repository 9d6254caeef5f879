//! What one subscription is told: the renderings that all share, or what a fold makes of the journal.

use bytes::Bytes;
use tokenrail_application::{Page, Rendering};
use tokenrail_domain::{AgentId, Assembler, Event, Sequence};

use super::Writing;
use super::fold::{Fold, Piece, Silence};
use crate::frames::FrameWriter;

/// What one subscription is told.
#[derive(Debug)]
pub(crate) enum Teller {
    Shared { agent: AgentId, writing: Writing },
    Folded(Box<Folded>),
}

/// The state of a subscription whose dialect must know what came before.
#[derive(Debug)]
pub(crate) struct Folded {
    fold: Fold,
    /// Events up to this one are taken in, and not told.
    after: Sequence,
    /// What the open messages have said up to there, for one who joins in the middle.
    joining: Option<Assembler>,
    /// Text is told piece by piece, to be collected.
    pieces: bool,
}

/// What is told of one page.
#[derive(Debug)]
pub(crate) enum Words {
    Frames(Bytes),
    Pieces(Vec<Piece>),
}

impl Teller {
    /// The number up to which events are known to the listener, or nothing to him.
    pub(crate) fn after(&self) -> Sequence {
        match self {
            Self::Shared { .. } => Sequence::START,
            Self::Folded(folded) => folded.after,
        }
    }

    /// What to say of a page; the one after the page before, or the first of a turn.
    pub(crate) fn tell(&mut self, page: &Page) -> Words {
        match self {
            Self::Shared { agent, writing } => Words::Frames(writing.of(*agent, &page.batch).from(page.skip)),
            Self::Folded(folded) => folded.tell(page),
        }
    }
}

impl Folded {
    pub(crate) fn new(fold: Fold, after: Sequence, joins: bool, pieces: bool) -> Self {
        let joining = (joins && fold.tells_what_was_said()).then(Assembler::default);
        Self { fold, after, joining, pieces }
    }

    fn tell(&mut self, page: &Page) -> Words {
        let events = page.events();
        let (known, new) = events.split_at(events.partition_point(|event| event.sequence <= self.after));
        self.take_in(known);
        if self.pieces {
            let mut pieces = Vec::new();
            new.iter().for_each(|event| self.fold.event(event, &mut pieces));
            return Words::Pieces(pieces);
        }
        let Some(last) = known.last() else { return Words::Frames(self.write(page)) };
        let mut out = FrameWriter::default();
        if last.sequence == self.after
            && let Some(open) = self.joining.take()
        {
            self.fold.so_far(&open, last, &mut out);
        }
        new.iter().for_each(|event| self.fold.event(event, &mut out));
        Words::Frames(out.into_bytes())
    }

    fn take_in(&mut self, events: &[Event]) {
        for event in events {
            self.fold.event(event, &mut Silence);
            if let Some(open) = &mut self.joining {
                open.record(event.sequence, &event.body);
            }
        }
    }

    /// The page as frames. Folds of one dialect are in the same state at the same event, so a whole batch is written
    /// by the first one, for all.
    fn write(&mut self, page: &Page) -> Bytes {
        let key = self.fold.key();
        if page.skip == 0 && page.batch.rendered(key).is_none() {
            let mut first = false;
            let rendering = page.batch.rendering(key, |events| {
                first = true;
                render(&mut self.fold, events)
            });
            let bytes = rendering.bytes.clone();
            if !first {
                // Another listener was faster.
                self.take_in(page.events());
            }
            return bytes;
        }
        match page.batch.rendered(key) {
            Some(rendering) => {
                self.take_in(page.events());
                rendering.from(page.skip)
            }
            None => render(&mut self.fold, page.events()).bytes,
        }
    }
}

fn render(fold: &mut Fold, events: &[Event]) -> Rendering {
    let mut out = FrameWriter::default();
    let mut ends = Vec::with_capacity(events.len());
    for event in events {
        fold.event(event, &mut out);
        ends.push(out.len());
    }
    Rendering { bytes: out.into_bytes(), ends }
}
