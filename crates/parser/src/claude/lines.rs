//! The line format of Claude Code.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenrail_domain::{ContentBlock, JsonText};

use crate::fields::raw_structs;
pub(super) use crate::fields::{Raw, elements, is_true, number, object, read, reread, text, tool_input};

raw_structs! {
    /// The common fields of all lines, from which the type of a line is determined.
    pub(super) struct Head { kind = "type", subtype, session_id, parent_tool_use_id, event, abandoned_blocks }

    /// The first line of a turn.
    pub(super) struct InitLine { claude_code_version }
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

raw_structs! {
    /// One event of the model's own stream.
    pub(super) struct StreamEvent { kind = "type", index, delta, content_block, message, usage, error }

    /// The delta of a block or of a message.
    pub(super) struct Delta { kind = "type", text, thinking, partial_json, stop_reason }

    /// The blocks of a message that are void.
    pub(super) struct AbandonedBlocks { from_block_index }

    /// An `assistant` or `user` line, or a line of the old type `message`, in which the message may be the line itself.
    pub(super) struct MessageLine {
        message, parent_tool_use_id, aborted, is_replay = "isReplay", is_synthetic = "isSynthetic",
        is_api_error_message, error, api_error, api_error_status, api_error_type,
        /// What the tool says beside the result for the model.
        #[serde(alias = "toolUseResult")]
        tool_use_result,
    }

    /// A message of the model's API.
    pub(super) struct Message { id, model, role, content, stop_reason }

    /// A content block of any type.
    pub(super) struct Block { kind = "type", text, thinking, id, name, input, tool_use_id, content, is_error }

    /// The end of a turn.
    pub(super) struct ResultLine {
        subtype, is_error, result, errors, num_turns, total_cost_usd, usage, terminal_reason, api_error,
        api_error_status, api_error_type, origin,
    }

    /// An object with a type: the origin of a turn, an error of the API, a control request.
    pub(super) struct Labelled { kind, type_name = "type", subtype, message }

    /// A control request or response.
    pub(super) struct ControlLine { request, response }

    /// A line about tasks that the agent runs in the background.
    pub(super) struct TaskLine { task_id, is_backgrounded, tasks, patch, status }
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
