//! Writes the events of a stream that a client does not have yet.

use super::fold::{OpenAi, ResponseFrame};
use super::pieces::Pieces;
use super::writer::Writer;
use crate::fold::Frames;

/// The events with the number `from` and greater, as blocks.
pub(crate) struct Rest {
    out: Pieces,
    from: u64,
    /// The number of the next event.
    next: u64,
}

impl Rest {
    pub(crate) fn new(from: u64) -> Self {
        Self { out: Pieces::default(), from, next: 0 }
    }
}

impl Writer for Rest {
    fn pieces(&mut self) -> &mut Pieces {
        &mut self.out
    }

    fn is_taken(&self) -> bool {
        self.out.is_empty()
    }

    fn is_ahead(&self) -> bool {
        self.next < self.from
    }
}

impl Frames<OpenAi> for Rest {
    fn frame(&mut self, ResponseFrame { event, about }: ResponseFrame<'_>) {
        self.next = event.sequence_number + 1;
        if self.from <= event.sequence_number {
            self.out.block(None, Some(event.kind), &event, about);
        }
    }
}
