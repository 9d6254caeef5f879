//! How much an event counts against a limit in bytes.

use bytes::Bytes;
use tokenrail_domain::{ContentBlock, Event, EventBody};

/// Its text and its raw lines.
pub(super) fn of(event: &Event) -> usize {
    let text = match &event.body {
        EventBody::UserMessage { content } => content.len(),
        EventBody::TextDelta { text, .. } | EventBody::ReasoningDelta { text, .. } => text.len(),
        EventBody::ToolInputDelta { fragment, .. } => fragment.len(),
        EventBody::Message(message) => message.blocks.iter().map(of_block).sum(),
        EventBody::ToolCall(call) => call.input.as_str().len(),
        EventBody::ToolResult(result) => result.content.as_str().len(),
        EventBody::Usage(usage) => usage.usage.as_str().len(),
        EventBody::Notice(notice) => notice.data.as_str().len(),
        EventBody::Abandoned { .. } => 0,
        EventBody::Error(error) => error.text.len(),
        EventBody::TurnResult(result) => result.text.len(),
    };
    text + event.raw.as_ref().map_or(0, Bytes::len)
}

fn of_block(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) | ContentBlock::Reasoning(text) => text.len(),
        ContentBlock::ToolUse { input, .. } => input.as_str().len(),
        ContentBlock::Other(value) => value.as_str().len(),
    }
}
