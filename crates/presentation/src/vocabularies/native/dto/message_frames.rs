//! The frames of the dialect `message`.

use serde::Serialize;

use crate::json::{IdText, IsoTime};

/// The content of a message: its text.
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

/// `message.new`: a message of a user.
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
    /// The tool call whose sub-agent sends the message.
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
    /// How the message ended, if it is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_call_id: Option<&'a str>,
    pub(crate) timestamp: IsoTime,
}

/// `message.status`: the current state of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageStatusFrame<'a> {
    pub(crate) agent_id: IdText,
    /// The number of the event up to which this state is known.
    pub(crate) sequence: u64,
    pub(crate) message_id: IdText,
    pub(crate) state: &'static str,
    pub(crate) content: TextContent<'a>,
}
