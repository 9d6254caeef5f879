//! Writes the events of a stream that a client does not have yet.

use bytes::Bytes;

use super::dto::StreamEvent;
use super::fold::OpenAi;
use super::writer::Writer;
use crate::blocks::BlockWriter;
use crate::fold::Frames;

/// The events with the number `from` and greater, as blocks.
pub(crate) struct Rest {
    out: BlockWriter,
    from: u64,
    /// The number of the next event.
    next: u64,
}

impl Rest {
    pub(crate) fn new(from: u64) -> Self {
        Self { out: BlockWriter::default(), from, next: 0 }
    }
}

impl Writer for Rest {
    fn take(&mut self) -> Bytes {
        self.out.take()
    }

    fn is_ahead(&self) -> bool {
        self.next < self.from
    }
}

impl Frames<OpenAi> for Rest {
    fn frame(&mut self, event: StreamEvent<'_>) {
        self.next = event.sequence_number + 1;
        if self.from <= event.sequence_number {
            self.out.named(event.kind, None, &event);
        }
    }
}
