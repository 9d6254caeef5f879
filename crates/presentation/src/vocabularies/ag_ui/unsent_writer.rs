//! Writes the events of a stream that a client does not have yet.

use bytes::Bytes;

use super::cursor::ThreadCursor;
use super::dto::EventDto;
use super::fold::AgUi;
use crate::blocks::BlockWriter;
use crate::fold::Frames;

/// The events after a cursor, as blocks. Clients read only their data.
pub(crate) struct UnsentWriter {
    out: BlockWriter,
    after: ThreadCursor,
}

impl UnsentWriter {
    pub(crate) fn new(after: ThreadCursor) -> Self {
        Self { out: BlockWriter::default(), after }
    }

    /// Takes what was written since the last call.
    pub(crate) fn take(&mut self) -> Bytes {
        self.out.take()
    }
}

impl Frames<AgUi> for UnsentWriter {
    fn frame(&mut self, event: EventDto<'_>) {
        if self.after < event.cursor() {
            self.out.unnamed(&event);
        }
    }
}
