//! Blocks of an event stream (SSE): LF only, one line of JSON each.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;
use tokenrail_domain::Event;
use utoipa::ToSchema;

use crate::fold::{Fold, Frames};

/// The last block of a stream, in vocabularies that have one.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// One block of an event stream, as it is read.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes streams in the OpenAPI document; blocks are written by hand")]
pub(crate) struct EventBlock {
    #[schema(nullable = false)]
    event: Option<String>,
    /// The cursor, if the stream has one.
    #[schema(nullable = false)]
    id: Option<String>,
    /// JSON, or `[DONE]`.
    data: String,
}

/// Writes blocks one after the other.
#[derive(Debug, Default)]
pub(crate) struct BlockWriter(Vec<u8>);

impl BlockWriter {
    /// Appends a block without a name.
    pub(crate) fn unnamed<T: Serialize>(&mut self, value: &T) {
        self.block(None, None, value);
    }

    /// Appends a block with a name. `id` is the cursor with which a client reconnects.
    pub(crate) fn named<T: Serialize>(&mut self, name: &str, id: Option<u64>, value: &T) {
        self.block(id, Some(name), value);
    }

    /// Appends a block.
    pub(crate) fn block<T: Serialize>(&mut self, id: Option<u64>, name: Option<&str>, value: &T) {
        self.block_by(id, name, |out| serde_json::to_writer(out, value));
    }

    /// Appends a block whose JSON `write` appends.
    pub(crate) fn block_by(
        &mut self,
        id: Option<u64>,
        name: Option<&str>,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) {
        let begin = self.0.len();
        let out = &mut self.0;
        if let Some(id) = id {
            // Writing to memory cannot fail.
            let _ = writeln!(out, "id: {id}");
        }
        if let Some(name) = name {
            out.extend_from_slice(b"event: ");
            // The name may come from the agent. A line end in it would forge a field.
            out.extend(name.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
            out.push(b'\n');
        }
        out.extend_from_slice(b"data: ");
        let data = out.len();
        if let Err(error) = write(out) {
            // Not expected: all types that are written here can be serialized.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot serialize a block of an event stream"
            );
            out.truncate(begin);
            return;
        }
        one_line(&mut out[data..]);
        out.extend_from_slice(b"\n\n");
    }

    pub(crate) fn done(&mut self) {
        self.0.extend_from_slice(DONE);
    }

    /// Moves the blocks of another writer to the end of this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Takes what was written since the last call.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.0).into()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A fold of any vocabulary whose frames are blocks.
pub(crate) trait BlockFold {
    /// Applies the next event, and appends its blocks.
    fn blocks(&mut self, event: &Event, out: &mut BlockWriter);
}

impl<F: Fold> BlockFold for F
where
    BlockWriter: Frames<F::Vocabulary>,
{
    fn blocks(&mut self, event: &Event, out: &mut BlockWriter) {
        self.event(event, out);
    }
}

/// Puts JSON on one line, by turning line ends into spaces. In JSON, a raw line end can only be between tokens.
pub(crate) fn one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
