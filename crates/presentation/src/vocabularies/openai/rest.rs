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
}

impl Rest {
    pub(crate) fn new(from: u64) -> Self {
        Self { out: BlockWriter::default(), from }
    }
}

impl Writer for Rest {
    fn take(&mut self) -> Bytes {
        self.out.take()
    }
}

impl Frames<OpenAi> for Rest {
    fn frame(&mut self, event: StreamEvent<'_>) {
        if self.from <= event.sequence_number {
            self.out.named(event.kind, None, &event);
        }
    }
}
