//! The frames of the dialect `stream`. Tools and results have the field names of the model's API.

use serde::Serialize;

use crate::json::{IdText, Json};
use crate::vocabularies::native::dto::frames::ResultDto;

/// `agent:stream`: more text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamText<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
    pub(crate) text: &'a str,
    /// Whether the text of the event `sequence` continues in the next frame.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) more: bool,
}

/// `agent:tool_use`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamToolUse<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) tool: ToolUseDto<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolUseDto<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) input: Json<'a>,
}

/// `agent:tool_result`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamToolResult<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) result: ToolResultDto<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolResultDto<'a> {
    pub(crate) tool_use_id: &'a str,
    pub(crate) content: Json<'a>,
    pub(crate) is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<&'a str>,
}

/// `agent:complete`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamResult<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) result: StopDto<'a>,
}

/// How a turn ended, and why the model stopped.
#[derive(Debug, Serialize)]
pub(crate) struct StopDto<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<&'a str>,
    #[serde(flatten)]
    pub(crate) result: ResultDto<'a>,
}

/// `agent:error`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamFault<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    /// The error message.
    pub(crate) message: &'a str,
    /// The class of the error.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<f64>,
    pub(crate) recoverable: bool,
}

/// `agent:cancelled`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamCancelled {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
}

/// `agent:abandoned`: the text of this message is void, because the agent sends it again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamAbandoned {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
}
