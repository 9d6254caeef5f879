//! Blocks of an event stream (SSE) for vocabularies that write their own: LF only, one line of JSON each.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;

use super::event_stream::one_line;

/// The block after which nothing comes, where a vocabulary has one.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Writes blocks one after the other.
#[derive(Default)]
pub(crate) struct BlockWriter(Vec<u8>);

impl BlockWriter {
    /// Appends a block without a name.
    pub(crate) fn unnamed<T: Serialize>(&mut self, value: &T) {
        self.block("data: ", value);
    }

    /// Appends a block with a name; `id` is the cursor with which a client comes again.
    pub(crate) fn named<T: Serialize>(&mut self, name: &'static str, id: Option<u64>, value: &T) {
        let head = match id {
            Some(id) => format!("id: {id}\nevent: {name}\ndata: "),
            None => format!("event: {name}\ndata: "),
        };
        self.block(&head, value);
    }

    pub(crate) fn done(&mut self) {
        self.0.extend_from_slice(DONE);
    }

    /// Appends what another one has written.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// What was written since it was taken last.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.0).into()
    }

    fn block<T: Serialize>(&mut self, head: &str, value: &T) {
        let begin = self.0.len();
        // Writing to memory cannot fail, and nothing in a frame refuses to be written.
        let _ = self.0.write_all(head.as_bytes());
        let data = self.0.len();
        if serde_json::to_writer(&mut self.0, value).is_err() {
            self.0.truncate(begin);
            return;
        }
        one_line(&mut self.0[data..]);
        self.0.extend_from_slice(b"\n\n");
    }
}
