//! Chunks on their way out: each has an index, and who has some already gets the rest.

use bytes::Bytes;

use super::fold::AiSdk;
use crate::blocks::BlockWriter;
use crate::fold::Frames;
use crate::frames::FrameWriter;
use crate::json::JsonList;
use crate::vocabularies::ai_sdk::dto::{ChatReply, Chunk};

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
    Lines(BlockWriter),
    /// Frames of a WebSocket, for one request of many.
    Frames { out: FrameWriter, request: String },
}

impl ChunkWriter {
    /// As an event stream, from that chunk on.
    pub(crate) fn lines(from: u64) -> Self {
        Self { form: Form::Lines(BlockWriter::default()), count: 0, from }
    }

    /// As answers to a request over a WebSocket, from that chunk on.
    pub(crate) fn frames(request: String, from: u64) -> Self {
        Self { form: Form::Frames { out: FrameWriter::default(), request }, count: 0, from }
    }

    /// How many chunks there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// What was written since this was last asked.
    pub(crate) fn take(&mut self) -> Bytes {
        match &mut self.form {
            Form::Lines(out) => out.take(),
            Form::Frames { out, .. } => std::mem::take(out).into_bytes(),
        }
    }
}

impl Frames<AiSdk> for ChunkWriter {
    /// Appends a chunk, unless the reader has it.
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
