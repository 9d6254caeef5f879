//! What one subscription is told: the renderings that all share, or what a fold makes of the journal.

use bytes::Bytes;
use tokenrail_application::{Page, Rendering};
use tokenrail_domain::{AgentId, Assembler, Event, Sequence};

use super::Writing;
use super::fold::{Fold, Piece, Silence};
use super::joined::Joined;

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
            Self::Shared { agent, writing } => Words::Frames(writing.of(*agent, page)),
            Self::Folded(folded) => folded.tell(page),
        }
    }
}

impl Folded {
    pub(crate) fn new(fold: Fold, after: Sequence, joins: bool, telling: Telling) -> Self {
        let joining = (joins && fold.tells_what_was_said()).then(Assembler::default);
        Self { fold, after, joining, telling }
    }

    fn tell(&mut self, page: &Page) -> Words {
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
        let Some(last) = known.last() else { return Words::Frames(self.write(page)) };
        let mut out = Joined::new(self.is_packed());
        if last.sequence == self.after
            && let Some(open) = self.joining.take()
        {
            self.fold.so_far(&open, last, &mut out);
        }
        out.take(&mut self.fold, new);
        Words::Frames(out.into_bytes())
    }

    fn is_packed(&self) -> bool {
        self.telling == Telling::Packed
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
        let packed = self.is_packed();
        let key = self.fold.key(packed);
        if page.skip == 0 && page.batch.rendered(key).is_none() {
            let mut first = false;
            let rendering = page.batch.rendering(key, |events| {
                first = true;
                render(&mut self.fold, packed, events)
            });
            let bytes = rendering.bytes.clone();
            if !first {
                // Another listener was faster.
                self.take_in(page.events());
            }
            return bytes;
        }
        match page.batch.rendered(key).and_then(|rendering| rendering.from(page.skip)) {
            Some(bytes) => {
                self.take_in(page.events());
                bytes
            }
            None => render(&mut self.fold, packed, page.events()).bytes,
        }
    }
}

fn render(fold: &mut Fold, packed: bool, events: &[Event]) -> Rendering {
    let mut out = Joined::new(packed);
    let ends = out.take(fold, events);
    Rendering { bytes: out.into_bytes(), ends }
}
