//! The column `content`: plain text, or JSON if there is more than text.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, EventBody, JsonText};

/// One part of a message.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockJson {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: JsonAsText,
    },
    /// A block of a kind that Tokenrail does not know, unchanged.
    Other {
        value: JsonAsText,
    },
}

/// Foreign JSON inside ours, unchanged. Serde buffers a tagged enum while it reads it, and only text survives that
/// unchanged.
type JsonAsText = String;

/// A tool call.
#[derive(Serialize, Deserialize)]
struct ToolUseJson {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    name: String,
    input: Box<RawValue>,
}

pub(super) fn write(body: &EventBody) -> serde_json::Result<String> {
    Ok(match body {
        EventBody::UserMessage { content, images: _ } => content.clone(),
        EventBody::TextDelta { text, .. } | EventBody::ReasoningDelta { text, .. } => text.clone(),
        EventBody::ToolInputDelta { fragment, .. } => fragment.clone(),
        EventBody::Message(message) => match &message.blocks[..] {
            [ContentBlock::Text(text)] => text.clone(),
            blocks => serde_json::to_string(&blocks.iter().map(BlockJson::of).collect::<Vec<_>>())?,
        },
        EventBody::ToolCall(call) => serde_json::to_string(&ToolUseJson {
            kind: "tool_use".to_owned(),
            id: call.call.clone(),
            name: call.tool.clone(),
            input: raw_json(&call.input)?,
        })?,
        EventBody::ToolResult(result) => result.content.as_str().to_owned(),
        EventBody::Notice(notice) => notice.data.as_str().to_owned(),
        EventBody::Usage(_) | EventBody::Abandoned { .. } => String::new(),
        EventBody::Error(error) => error.text.clone(),
        EventBody::TurnResult(result) => result.text.clone(),
    })
}

/// Whether a message with these blocks is stored as the text of its only block.
pub(super) fn is_plain(blocks: &[ContentBlock]) -> bool {
    matches!(blocks, [ContentBlock::Text(_)])
}

/// The blocks of a message. `in_json` is false if its content is the text of its only block.
pub(super) fn blocks(content: String, in_json: bool) -> serde_json::Result<Vec<ContentBlock>> {
    if !in_json {
        return Ok(vec![ContentBlock::Text(content)]);
    }
    let blocks: Vec<BlockJson> = serde_json::from_str(&content)?;
    Ok(blocks.into_iter().map(BlockJson::into_block).collect())
}

/// The id, the tool and the input of a tool call.
pub(super) fn tool_use(content: &str) -> serde_json::Result<(String, String, JsonText)> {
    let ToolUseJson { kind: _, id, name, input } = serde_json::from_str(content)?;
    Ok((id, name, JsonText::new_unchecked(input.get())))
}

pub(super) fn raw_json(text: &JsonText) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(text.as_str().to_owned())
}

impl BlockJson {
    fn of(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text(text) => Self::Text { text: text.clone() },
            ContentBlock::Reasoning(text) => Self::Reasoning { text: text.clone() },
            ContentBlock::ToolUse { call, tool, input } => {
                Self::ToolUse { id: call.clone(), name: tool.clone(), input: input.as_str().to_owned() }
            }
            ContentBlock::Other(value) => Self::Other { value: value.as_str().to_owned() },
        }
    }

    fn into_block(self) -> ContentBlock {
        match self {
            Self::Text { text } => ContentBlock::Text(text),
            Self::Reasoning { text } => ContentBlock::Reasoning(text),
            Self::ToolUse { id, name, input } => {
                ContentBlock::ToolUse { call: id, tool: name, input: JsonText::new_unchecked(input) }
            }
            Self::Other { value } => ContentBlock::Other(JsonText::new_unchecked(value)),
        }
    }
}
