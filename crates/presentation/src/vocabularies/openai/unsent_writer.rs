//! Writes the events of a stream that a client does not have yet.

use super::fold::{OpenAi, ResponseFrame};
use super::writer::{Unsent, Writer};
use crate::fold::Frames;

/// The events with the number `from` and greater, as blocks.
pub(crate) struct UnsentWriter(Unsent);

impl UnsentWriter {
    pub(crate) fn new(from: u64) -> Self {
        Self(Unsent::new(from))
    }
}

impl Writer for UnsentWriter {
    fn unsent(&self) -> &Unsent {
        &self.0
    }

    fn unsent_mut(&mut self) -> &mut Unsent {
        &mut self.0
    }
}

impl Frames<OpenAi> for UnsentWriter {
    fn frame(&mut self, ResponseFrame { event, about }: ResponseFrame<'_>) {
        if self.0.count(event.sequence_number) {
            self.0.out.block(None, Some(event.kind), &event, about);
        }
    }
}
