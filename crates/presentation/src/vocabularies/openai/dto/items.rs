//! The items of a response: what the agent said, thought and did, and what it was asked.

use serde::Serialize;
use tokenrail_domain::Turn;

use super::gaps::{Gap, GapText};
use crate::vocabularies::openai::response_id::ResponseId;

/// The state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemStatus {
    InProgress,
    Completed,
    Incomplete,
    /// Only of a tool call: the tool reports an error.
    Failed,
}

/// One item of a response.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputItem<'a> {
    Message {
        id: String,
        role: &'static str,
        status: ItemStatus,
        content: Vec<OutputText>,
    },
    Reasoning {
        id: String,
        status: ItemStatus,
        summary: Vec<SummaryText>,
    },
    /// A tool call that the agent has made itself. Of all types of calls, clients execute none of this type: the server
    /// of the API calls the tool.
    McpCall {
        id: String,
        status: ItemStatus,
        server_label: &'a str,
        name: GapText<'a>,
        arguments: GapText<'a>,
        output: Option<Gap>,
        error: Option<McpError>,
        approval_request_id: (),
    },
}

/// The text of a message.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct OutputText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Gap,
    annotations: [(); 0],
    logprobs: [(); 0],
}

impl OutputText {
    pub(crate) fn new() -> Self {
        Self { kind: "output_text", text: Gap::Text, annotations: [], logprobs: [] }
    }
}

/// A thought. Clients show a summary, but not all of them show the text of a thought.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct SummaryText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Gap,
}

impl SummaryText {
    pub(crate) fn new() -> Self {
        Self { kind: "summary_text", text: Gap::Text }
    }
}

/// Why a tool call has failed.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct McpError {
    #[serde(rename = "type")]
    kind: &'static str,
    content: [ToolText; 1],
}

#[derive(Debug, PartialEq, Serialize)]
struct ToolText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Gap,
}

impl McpError {
    pub(crate) fn new() -> Self {
        let text = ToolText { kind: "text", text: Gap::Result };
        Self { kind: "mcp_tool_execution_error", content: [text] }
    }
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct InputItem {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    status: ItemStatus,
    content: Vec<InputPart>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputPart {
    InputText {
        text: String,
    },
    /// The image itself is not repeated.
    InputImage {
        detail: &'static str,
        file_id: (),
        image_url: (),
    },
}

impl InputItem {
    pub(crate) fn new(turn: &Turn) -> Self {
        let id = ResponseId { agent: turn.agent, turn: turn.number }.item("in_", 0);
        let image = |_| InputPart::InputImage { detail: "auto", file_id: (), image_url: () };
        let text = InputPart::InputText { text: turn.prompt.clone() };
        let content = std::iter::once(text).chain(turn.images.iter().map(image)).collect();
        Self { id, kind: "message", role: "user", status: ItemStatus::Completed, content }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// A list with all of its items.
#[derive(Debug, Serialize)]
pub(crate) struct ListDto<T> {
    object: &'static str,
    data: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_id: Option<String>,
    has_more: bool,
}

impl<T> ListDto<T> {
    pub(crate) fn new(data: Vec<T>, id: fn(&T) -> &str) -> Self {
        let [first_id, last_id] =
            [data.first(), data.last()].map(|item| item.map(|item| id(item).to_owned()));
        Self { object: "list", data, first_id, last_id, has_more: false }
    }
}
