//! One part of a message that arrives in pieces.

use tokenrail_domain::{ContentBlock, JsonText};

use crate::text::SurrogateJoiner;

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    Text,
    Reasoning,
    ToolInput,
    /// A part that is not shown in pieces.
    Other,
}

/// What has arrived of one part.
#[derive(Debug)]
pub(super) struct OpenPart {
    pub(super) piece: PartKind,
    /// The agent's number of the block.
    pub(super) block: u32,
    /// The text, or the fragments of tool input, so far.
    pub(super) said: String,
    /// Whether any event has shown the part.
    pub(super) shown: bool,
    pub(super) repeated: bool,
    pub(super) joiner: SurrogateJoiner,
    /// The block as it began or as it was repeated. For text and reasoning, only if it differs from the pieces.
    pub(super) whole: Option<ContentBlock>,
}

impl PartKind {
    pub(super) fn of(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text(_) => Self::Text,
            ContentBlock::Reasoning(_) => Self::Reasoning,
            ContentBlock::ToolUse { .. } => Self::ToolInput,
            ContentBlock::Other(_) => Self::Other,
        }
    }
}

impl OpenPart {
    /// A part of which nothing has arrived.
    pub(super) fn new(piece: PartKind, block: u32) -> Self {
        Self {
            piece,
            block,
            said: String::new(),
            shown: false,
            repeated: false,
            joiner: SurrogateJoiner::default(),
            whole: (piece == PartKind::ToolInput).then(nameless_call),
        }
    }

    /// The part as a block of a complete message. `None` if the part is empty.
    pub(super) fn block(&self) -> Option<ContentBlock> {
        match &self.whole {
            Some(ContentBlock::ToolUse { call, tool, .. }) if self.shown && !self.repeated => {
                Some(ContentBlock::ToolUse {
                    call: call.clone(),
                    tool: tool.clone(),
                    input: JsonText::string(&self.said),
                })
            }
            Some(whole) => Some(whole.clone()),
            None if self.said.is_empty() => None,
            None if self.piece == PartKind::Reasoning => Some(ContentBlock::Reasoning(self.said.clone())),
            None => Some(ContentBlock::Text(self.said.clone())),
        }
    }

    pub(super) fn tool(&self) -> (&str, &str) {
        match &self.whole {
            Some(ContentBlock::ToolUse { call, tool, .. }) => (call, tool),
            _ => ("", ""),
        }
    }

    pub(super) fn is_call_of(&self, block: &ContentBlock) -> bool {
        match block {
            ContentBlock::ToolUse { call, .. } => self.tool().0 == call,
            _ => false,
        }
    }
}

/// A tool call of which only the input is known.
fn nameless_call() -> ContentBlock {
    ContentBlock::ToolUse { call: String::new(), tool: String::new(), input: JsonText::new_unchecked("{}") }
}
