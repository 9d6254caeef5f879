//! Chunks on their way out: each has an index, and who has some already gets the rest.

use std::io::Write as _;

use bytes::Bytes;

use crate::dto::{ChatReply, Chunk};
use crate::frames::FrameWriter;

/// Writes the chunks of one answer, in one of the two forms.
pub(crate) struct ChunkWriter {
    form: Form,
    /// How many chunks there were, those left out included.
    count: u64,
    /// The index of the first chunk that is wanted.
    from: u64,
}

enum Form {
    /// An event stream.
    Lines(Vec<u8>),
    /// Frames of a WebSocket, for one request of many.
    Frames { out: FrameWriter, request: String },
}

impl ChunkWriter {
    /// As an event stream, from that chunk on.
    pub(crate) fn lines(from: u64) -> Self {
        Self { form: Form::Lines(Vec::new()), count: 0, from }
    }

    /// As answers to a request over a WebSocket, from that chunk on.
    pub(crate) fn frames(request: String, from: u64) -> Self {
        Self { form: Form::Frames { out: FrameWriter::default(), request }, count: 0, from }
    }

    /// How many chunks there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Appends a chunk, unless the reader has it.
    pub(crate) fn push(&mut self, chunk: &Chunk<'_>) {
        let sequence = self.count;
        self.count += 1;
        if sequence < self.from {
            return;
        }
        match &mut self.form {
            Form::Lines(out) => line(out, chunk),
            Form::Frames { out, request } => {
                out.json(&ChatReply::Chunk { request_id: request, sequence, chunk });
            }
        }
    }

    /// What was written since this was last asked.
    pub(crate) fn take(&mut self) -> Bytes {
        match &mut self.form {
            Form::Lines(out) => std::mem::take(out).into(),
            Form::Frames { out, .. } => std::mem::take(out).into_bytes(),
        }
    }
}

fn line(out: &mut Vec<u8>, chunk: &Chunk<'_>) {
    let begin = out.len();
    // Writing to memory cannot fail.
    let _ = out.write_all(b"data: ");
    let data = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, chunk) {
        // No type of ours refuses to be written.
        tracing::error!(error = &error as &dyn std::error::Error, "a chunk cannot be written");
        out.truncate(begin);
        return;
    }
    one_line(&mut out[data..]);
    out.extend_from_slice(b"\n\n");
}

/// Makes JSON fit into one line: in JSON, a bare line end can only stand between tokens.
fn one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
