//! Messages that arrive in pieces, and the whole blocks that repeat them.

use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, MessageOutcome};

use super::lines::{self, Delta, Raw};
use crate::emitter::Emitter;
use crate::open_message::{OpenMessage, PartKind};

/// The stream of the main thread. At most one message is open at a time.
#[derive(Debug, Default)]
pub(super) struct Stream {
    open: Option<OpenMessage>,
    /// The last message, if it ended before all of its blocks were repeated. The repeated blocks may still arrive.
    ended: Option<OpenMessage>,
}

impl Stream {
    /// A new message begins. A message that is still open has lost its stream.
    pub(super) fn start(&mut self, id: Option<String>, emitter: &mut Emitter<'_>) {
        self.give_up(emitter);
        self.ended = None;
        self.open = Some(OpenMessage::new(id));
    }

    pub(super) fn start_block(&mut self, index: u32, raw: &RawValue) {
        // Text in the block's start is not emitted: it also arrives in deltas, and old versions print some of it here
        // too.
        self.open().start(index, lines::block(raw));
    }

    pub(super) fn delta(&mut self, index: u32, delta: &Delta<'_>, emitter: &mut Emitter<'_>) {
        let (piece, raw) = match lines::text(delta.kind).as_deref() {
            Some("text_delta") => (PartKind::Text, delta.text),
            Some("thinking_delta") => (PartKind::Reasoning, delta.thinking),
            Some("input_json_delta") => (PartKind::ToolInput, delta.partial_json),
            // Signatures, citations and unknown types have nothing to display.
            _ => return,
        };
        if let Some(raw) = raw {
            self.open().say(index, piece, raw.get(), emitter);
        }
    }

    pub(super) fn stop_block(&mut self, index: u32, emitter: &mut Emitter<'_>) {
        if let Some(open) = &mut self.open {
            open.stop(index, emitter);
        }
    }

    /// Ends the message. Its blocks from `abandoned` on are void, unless they were repeated whole.
    pub(super) fn stop(&mut self, abandoned: Option<u32>, emitter: &mut Emitter<'_>) {
        let Some(mut open) = self.open.take() else { return };
        open.finish(abandoned, emitter);
        self.ended = (open.awaits_repetition()).then_some(open);
    }

    /// Abandons the open message, because the agent starts again. Everything that was not repeated whole is void.
    pub(super) fn give_up(&mut self, emitter: &mut Emitter<'_>) {
        if let Some(mut open) = self.open.take() {
            open.finish(Some(0), emitter);
        }
    }

    /// Like [`Stream::give_up`], but keeps a message that has shown nothing that could be void: errors are also
    /// reported in the middle of messages that end normally.
    pub(super) fn give_up_unfinished(&mut self, emitter: &mut Emitter<'_>) {
        if self.open.as_ref().is_some_and(OpenMessage::is_unfinished) {
            self.give_up(emitter);
        }
    }

    /// The agent was interrupted: a message without an end is cut, even if its blocks arrived whole.
    pub(super) fn interrupt(&mut self) {
        if let Some(open) = &mut self.open {
            open.cut = Some(MessageOutcome::Cancelled);
        }
    }

    /// Ends the turn. If the turn did not end normally, `cut` is the outcome of a message without an end. A message
    /// with missing blocks stays open; it is closed together with the turn.
    pub(super) fn close(&mut self, cut: Option<MessageOutcome>, emitter: &mut Emitter<'_>) {
        if let Some(mut open) = self.open.take() {
            if open.is_unfinished() {
                open.flush(emitter);
            } else {
                open.cut = open.cut.or(cut);
                open.finish(None, emitter);
            }
        }
        self.ended = None;
    }

    /// Takes blocks that repeat streamed blocks, and returns those that did not arrive in pieces.
    pub(super) fn repeat(
        &mut self,
        id: Raw<'_>,
        blocks: Vec<ContentBlock>,
        aborted: bool,
        emitter: &mut Emitter<'_>,
    ) -> Vec<ContentBlock> {
        let id = lines::text(id);
        if let Some(open) = self.open.as_mut().filter(|open| open.is_of(id.as_deref())) {
            for block in blocks {
                open.repeat(block, emitter);
            }
            if aborted {
                open.cut = Some(MessageOutcome::Cancelled);
            }
            return Vec::new();
        }
        if let Some(ended) = self.ended.as_mut().filter(|ended| ended.is_of(id.as_deref())) {
            return blocks.into_iter().filter(|block| !ended.has_said(block)).collect();
        }
        self.give_up_unfinished(emitter);
        blocks
    }

    fn open(&mut self) -> &mut OpenMessage {
        self.open.get_or_insert_with(|| OpenMessage::new(None))
    }
}

/// Parses the index of a content block.
pub(super) fn index(raw: Raw<'_>) -> u32 {
    lines::number(raw).unwrap_or(0)
}
