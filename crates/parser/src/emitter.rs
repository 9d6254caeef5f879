//! The output of a parser.

use tokenrail_domain::{CompleteMessage, ContentBlock, EventBody, MessageOrdinal, MessageOutcome, Said};

/// Collects what a parser emits, and numbers the messages of the turn.
pub(crate) struct Emitter<'a> {
    pub(crate) said: &'a mut Vec<Said>,
    /// The ordinal of the turn's next message.
    pub(crate) next: &'a mut u32,
}

impl Emitter<'_> {
    /// Takes the ordinal for a message that is about to emit its first event.
    pub(crate) fn ordinal(&mut self) -> MessageOrdinal {
        let ordinal = MessageOrdinal(*self.next);
        *self.next += 1;
        ordinal
    }

    /// The next step is the caller of `IMessageParser::parse`: in the server, `Recorder::line` (application crate).
    pub(crate) fn event(&mut self, body: EventBody) {
        self.said.push(Said::Event(body));
    }

    /// Emits a message that had no deltas. Emits nothing if the message is empty.
    pub(crate) fn whole(
        &mut self,
        mut blocks: Vec<ContentBlock>,
        outcome: MessageOutcome,
        parent_call: Option<String>,
    ) {
        blocks.retain(|block| !is_empty(block));
        if blocks.is_empty() {
            return;
        }
        let message = self.ordinal();
        let complete = CompleteMessage { message, blocks, first_sequence: None, outcome, parent_call };
        self.event(EventBody::Message(Box::new(complete)));
    }
}

fn is_empty(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(text) | ContentBlock::Reasoning(text) => text.is_empty(),
        ContentBlock::ToolUse { .. } | ContentBlock::Other(_) => false,
    }
}
