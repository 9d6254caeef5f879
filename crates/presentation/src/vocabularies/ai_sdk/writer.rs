//! Writes chunks for a client. Each chunk has an index, so that a client that resumes gets only the chunks that it does
//! not have.

use bytes::Bytes;

use super::fold::AiSdk;
use crate::blocks::BlockWriter;
use crate::fold::Frames;
use crate::frames::FrameWriter;
use crate::json::JsonList;
use crate::vocabularies::ai_sdk::dto::{ChatReply, Chunk};

/// Writes the chunks of one response, in one of two forms.
pub(crate) struct ChunkWriter {
    form: Form,
    /// The number of chunks so far, including those that were not written.
    count: u64,
    /// The index of the first chunk to write.
    from: u64,
}

enum Form {
    /// An event stream.
    Lines(BlockWriter),
    /// Frames of a WebSocket, for one of its requests.
    Frames { out: FrameWriter, request: String },
}

impl ChunkWriter {
    /// Creates a writer of an event stream that starts with chunk `from`.
    pub(crate) fn lines(from: u64) -> Self {
        Self { form: Form::Lines(BlockWriter::default()), count: 0, from }
    }

    /// Creates a writer of the frames that respond to a WebSocket request, starting with chunk `from`.
    pub(crate) fn frames(request: String, from: u64) -> Self {
        Self { form: Form::Frames { out: FrameWriter::default(), request }, count: 0, from }
    }

    /// The number of chunks so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes what was written since the last call.
    pub(crate) fn take(&mut self) -> Bytes {
        match &mut self.form {
            Form::Lines(out) => out.take(),
            Form::Frames { out, .. } => std::mem::take(out).into_bytes(),
        }
    }
}

impl Frames<AiSdk> for ChunkWriter {
    /// Appends a chunk, unless the client already has it.
    fn frame(&mut self, chunk: &Chunk<'_>) {
        let sequence = self.count;
        self.count += 1;
        if sequence < self.from {
            return;
        }
        match &mut self.form {
            Form::Lines(out) => out.unnamed(chunk),
            Form::Frames { out, request } => {
                out.json(&ChatReply::Chunk { request_id: request, sequence, chunk });
            }
        }
    }
}

impl Frames<AiSdk> for JsonList {
    fn frame(&mut self, chunk: &Chunk<'_>) {
        self.item(chunk);
    }
}
