//! The frames of the dialect `message`.

use serde::Serialize;

use crate::json::{IdText, IsoTime};

/// What a message says: its text.
#[derive(Debug, Serialize)]
pub(crate) struct TextContent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> From<&'a str> for TextContent<'a> {
    fn from(text: &'a str) -> Self {
        Self { kind: "text", text }
    }
}

/// `message.new`: what a user says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageNew<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) session_id: IdText,
    pub(crate) message_id: IdText,
    pub(crate) role: &'static str,
    pub(crate) content: TextContent<'a>,
    pub(crate) timestamp: IsoTime,
}

/// `message.start`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageStart<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) session_id: IdText,
    pub(crate) message_id: IdText,
    pub(crate) role: &'static str,
    /// The tool call whose sub-agent says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_call_id: Option<&'a str>,
    pub(crate) timestamp: IsoTime,
}

/// `message.chunk`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageChunk<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
    pub(crate) content: TextContent<'a>,
}

/// `message.end`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageEnd<'a> {
    pub(crate) agent_id: IdText,
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
    pub(crate) content: TextContent<'a>,
    pub(crate) is_complete: bool,
    /// How it ended, where it is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_call_id: Option<&'a str>,
    pub(crate) timestamp: IsoTime,
}

/// `message.status`: a message as it stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageStatusFrame<'a> {
    pub(crate) agent_id: IdText,
    /// The event up to which this holds.
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
    pub(crate) state: &'static str,
    pub(crate) content: TextContent<'a>,
}
