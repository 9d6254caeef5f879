//! The line format of Claude Code.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, JsonText};

pub(super) use crate::fields::{Raw, elements, is_true, number, object, read, reread, text, tool_input};

/// The common fields of all lines, from which the type of a line is determined.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) subtype: Raw<'a>,
    #[serde(borrow)]
    pub(super) session_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) event: Raw<'a>,
    #[serde(borrow)]
    pub(super) abandoned_blocks: Raw<'a>,
}

/// The first line of a turn.
#[derive(Deserialize, Default)]
pub(super) struct InitLine<'a> {
    #[serde(borrow)]
    claude_code_version: Raw<'a>,
}

impl InitLine<'_> {
    /// Version `SILENT` is known not to print a text that was cut. Version `MARKING` is known to mark such a text. The
    /// versions between, such as 2.1.197, print a cut text as if it were whole.
    const SILENT: [u32; 3] = [2, 0, 55];
    const MARKING: [u32; 3] = [2, 1, 330];

    pub(super) fn cuts_unmarked(&self) -> bool {
        let version = text(self.claude_code_version).unwrap_or_default();
        let numbers: Vec<u32> = version.split('.').map_while(|number| number.parse().ok()).collect();
        !numbers.is_empty() && Self::SILENT[..] < numbers[..] && numbers[..] < Self::MARKING[..]
    }
}

/// A `stream_event` with a delta of a block, parsed in one pass: nearly all lines are of this type. A line that does
/// not have exactly this shape is parsed field by field.
#[derive(Deserialize)]
pub(super) struct DeltaLine<'a> {
    #[serde(borrow)]
    pub(super) session_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) event: DeltaEvent<'a>,
}

#[derive(Deserialize)]
pub(super) struct DeltaEvent<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) index: u32,
    #[serde(borrow)]
    pub(super) delta: Delta<'a>,
}

impl<'a> DeltaLine<'a> {
    /// The beginning of such lines, as current versions print them. A line with another beginning only misses this
    /// shortcut.
    const BEGINNING: &'static str = r#"{"type":"stream_event","#;

    /// Parses the line. `None` if it is another line or must be parsed field by field.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        if !line.starts_with(Self::BEGINNING) {
            return None;
        }
        let read: Self = serde_json::from_str(line).ok()?;
        let is_delta = read.event.kind == "content_block_delta";
        (is_delta && read.parent_tool_use_id.is_none()).then_some(read)
    }
}

/// One event of the model's own stream.
#[derive(Deserialize, Default)]
pub(super) struct StreamEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) index: Raw<'a>,
    #[serde(borrow)]
    pub(super) delta: Raw<'a>,
    #[serde(borrow)]
    pub(super) content_block: Raw<'a>,
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
    #[serde(borrow)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
}

/// The delta of a block or of a message.
#[derive(Deserialize, Default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    #[serde(borrow)]
    pub(super) thinking: Raw<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Raw<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Raw<'a>,
}

/// The blocks of a message that are void.
#[derive(Deserialize, Default)]
pub(super) struct AbandonedBlocks<'a> {
    #[serde(borrow)]
    pub(super) from_block_index: Raw<'a>,
}

/// An `assistant` or `user` line, or a line of the old type `message`, in which the message may be the line itself.
#[derive(Deserialize, Default)]
pub(super) struct MessageLine<'a> {
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) aborted: Raw<'a>,
    #[serde(borrow, rename = "isReplay")]
    pub(super) is_replay: Raw<'a>,
    #[serde(borrow, rename = "isSynthetic")]
    pub(super) is_synthetic: Raw<'a>,
    #[serde(borrow)]
    pub(super) is_api_error_message: Raw<'a>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error_status: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error_type: Raw<'a>,
}

/// A message of the model's API.
#[derive(Deserialize, Default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) model: Raw<'a>,
    #[serde(borrow)]
    pub(super) role: Raw<'a>,
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Raw<'a>,
}

/// A content block of any type.
#[derive(Deserialize, Default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    #[serde(borrow)]
    pub(super) thinking: Raw<'a>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
    #[serde(borrow)]
    pub(super) input: Raw<'a>,
    #[serde(borrow)]
    pub(super) tool_use_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) is_error: Raw<'a>,
}

/// The end of a turn.
#[derive(Deserialize, Default)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow)]
    pub(super) subtype: Raw<'a>,
    #[serde(borrow)]
    pub(super) is_error: Raw<'a>,
    #[serde(borrow)]
    pub(super) result: Raw<'a>,
    #[serde(borrow)]
    pub(super) errors: Raw<'a>,
    #[serde(borrow)]
    pub(super) num_turns: Raw<'a>,
    #[serde(borrow)]
    pub(super) total_cost_usd: Raw<'a>,
    #[serde(borrow)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow)]
    pub(super) terminal_reason: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error_status: Raw<'a>,
    #[serde(borrow)]
    pub(super) api_error_type: Raw<'a>,
    #[serde(borrow)]
    pub(super) origin: Raw<'a>,
}

/// An object with a type: the origin of a turn, an error of the API, a control request.
#[derive(Deserialize, Default)]
pub(super) struct Labelled<'a> {
    #[serde(borrow)]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) type_name: Raw<'a>,
    #[serde(borrow)]
    pub(super) subtype: Raw<'a>,
    #[serde(borrow)]
    pub(super) message: Raw<'a>,
}

/// A control request or response.
#[derive(Deserialize, Default)]
pub(super) struct ControlLine<'a> {
    #[serde(borrow)]
    pub(super) request: Raw<'a>,
    #[serde(borrow)]
    pub(super) response: Raw<'a>,
}

/// A line about tasks that the agent runs in the background.
#[derive(Deserialize, Default)]
pub(super) struct TaskLine<'a> {
    #[serde(borrow)]
    pub(super) task_id: Raw<'a>,
    #[serde(borrow)]
    pub(super) is_backgrounded: Raw<'a>,
    #[serde(borrow)]
    pub(super) tasks: Raw<'a>,
    #[serde(borrow)]
    pub(super) patch: Raw<'a>,
    #[serde(borrow)]
    pub(super) status: Raw<'a>,
}

/// The content of a message: a string, or an array of blocks.
pub(super) fn content(raw: Raw<'_>) -> Vec<ContentBlock> {
    match text(raw) {
        Some(text) => vec![ContentBlock::Text(text.into_owned())],
        None => elements(raw).into_iter().map(block).collect(),
    }
}

/// One content block.
pub(super) fn block(raw: &RawValue) -> ContentBlock {
    let block: Block<'_> = read(Some(raw));
    let known = match text(block.kind).as_deref() {
        // The start of a block that has not arrived yet may omit its empty text.
        Some("text") if block.text.is_none() => Some(ContentBlock::Text(String::new())),
        Some("thinking") if block.thinking.is_none() => Some(ContentBlock::Reasoning(String::new())),
        Some("text") => text(block.text).map(|text| ContentBlock::Text(text.into_owned())),
        Some("thinking") => text(block.thinking).map(|text| ContentBlock::Reasoning(text.into_owned())),
        Some("tool_use") => text(block.id).map(|call| ContentBlock::ToolUse {
            call: call.into_owned(),
            tool: text(block.name).unwrap_or_default().into_owned(),
            input: tool_input(block.input),
        }),
        _ => None,
    };
    known.unwrap_or_else(|| ContentBlock::Other(JsonText::new_unchecked(raw.get())))
}
