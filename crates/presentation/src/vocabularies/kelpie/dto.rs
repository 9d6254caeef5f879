//! The named events of the Kelpie vocabulary.

use serde::Serialize;

use crate::json::Json;

/// `message_chunk`: more text.
#[derive(Debug, Serialize)]
pub(crate) struct MessageChunk<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) content: &'a str,
}

/// `tool_call_start`: the agent calls a tool.
#[derive(Debug, Serialize)]
pub(crate) struct ToolCallStart<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) tool_call_id: &'a str,
    pub(crate) input: Json<'a>,
}

/// `tool_call_complete`: the result of a tool call.
#[derive(Debug, Serialize)]
pub(crate) struct ToolCallComplete<'a> {
    pub(crate) tool_call_id: &'a str,
    pub(crate) result: &'a str,
}

/// `message_complete`: the last frame of a turn that did not fail.
#[derive(Debug, Serialize)]
pub(crate) struct MessageComplete<'a> {
    pub(crate) message_id: &'a str,
}

/// `error`: the turn has failed. This is its last frame.
#[derive(Debug, Serialize)]
pub(crate) struct KelpieError<'a> {
    pub(crate) message: &'a str,
}
