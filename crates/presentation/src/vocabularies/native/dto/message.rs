//! One event of a journal, as clients see it.

mod said;

#[cfg(test)]
use super::declarations::Declarations;
use std::borrow::Cow;

use serde::Serialize;
use tokenrail_domain::{AgentId, Event, PromptImage, event_id};
use utoipa::ToSchema;
use uuid::Uuid;

use self::said::{MessageFields, first_sequence, said};
use crate::json::{AgentErrorDto, IdText, IsoTime, Json};

/// One event of a journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentMessage)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentMessage", optional_fields))]
pub(crate) struct AgentMessageDto<'a> {
    /// Unique. The id of a complete message is its `messageId`.
    #[schema(value_type = String, format = "uuid")]
    id: IdText,
    #[schema(value_type = String, format = "uuid")]
    agent_id: IdText,
    /// The number of the event in the journal: 1, 2, 3 … without gaps.
    sequence_number: u64,
    /// For a complete message: the number of its first delta, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    first_sequence: Option<u64>,
    /// `assistant`, `user`, `system`, `error`, `tool` or `response`.
    #[serde(rename = "type")]
    #[cfg_attr(
        test,
        ts(type = "\"assistant\" | \"user\" | \"system\" | \"error\" | \"tool\" | \"response\"")
    )]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional, type = "\"assistant\" | \"user\" | \"system\" | \"tool\""))]
    role: Option<&'static str>,
    #[schema(value_type = serde_json::Value)]
    content: ContentDto<'a>,
    /// The lines that the agent printed, joined by `\n`; only with `raw=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    raw: Option<Cow<'a, str>>,
    metadata: MetadataDto<'a>,
    #[schema(value_type = String, format = DateTime)]
    created_at: IsoTime,
}

/// What an event says: text, blocks, or JSON as the agent gave it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Content"))]
pub(crate) enum ContentDto<'a> {
    Text(Cow<'a, str>),
    Block(BlockDto<'a>),
    Blocks(Vec<BlockDto<'a>>),
    Given(Json<'a>),
}

/// One block of a message that does not consist of text only.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ContentBlock"))]
pub(crate) enum BlockDto<'a> {
    Text {
        text: &'a str,
    },
    Reasoning {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Json<'a>,
    },
    #[serde(untagged)]
    Other(Json<'a>),
}

/// Further properties of an event. A field that does not apply is absent.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentMessageMetadata)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AgentMessageMetadata", optional_fields))]
pub(crate) struct MetadataDto<'a> {
    pub(crate) event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    message_id: Option<IdText>,
    /// The index of the block in its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    part: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional, type = "MessageOutcome | TurnOutcome"))]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parent_tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    is_error: Option<bool>,
    /// What a tool call changed in files: a unified diff with the paths of the files and the numbers of the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    patch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    usage: Option<Json<'a>>,
    /// A notice's data, as the agent gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    data: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<AgentErrorDto<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    turn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    num_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message_count: Option<u32>,
    /// In the record of a turn: the id of the parent message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    parent_id: Option<IdText>,
    /// Who started the turn, if it was not a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    origin: Option<&'a str>,
    /// The images of a user message, in order. `GET /api/agents/{id}/turns/{n}/images/{k}` returns them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    #[cfg_attr(test, ts(as = "Option<Vec<PromptImageDto>>", optional))]
    images: Vec<PromptImageDto>,
}

/// An image of a prompt, without its data.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PromptImage)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "PromptImage"))]
pub(crate) struct PromptImageDto {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    media_type: &'static str,
    /// The size of the image.
    bytes: u64,
}

impl From<&PromptImage> for PromptImageDto {
    fn from(image: &PromptImage) -> Self {
        let PromptImage { media_type, bytes } = *image;
        Self { media_type: media_type.as_str(), bytes }
    }
}

impl<'a> AgentMessageDto<'a> {
    /// An event of this agent. `raw` includes its raw lines.
    pub(crate) fn new(agent: AgentId, event: &'a Event, raw: bool) -> Self {
        let Event { sequence, at, turn, body, raw: lines } = event;
        let MessageFields { kind, role, content, metadata } = said(agent, *turn, body);
        Self {
            id: IdText(event_id(agent, event)),
            agent_id: agent.into(),
            sequence_number: sequence.0,
            first_sequence: first_sequence(body),
            kind,
            role,
            content,
            raw: lines.as_ref().filter(|_| raw).map(|lines| String::from_utf8_lossy(lines)),
            metadata,
            created_at: IsoTime(*at),
        }
    }

    /// Adds the id of the parent message.
    pub(crate) fn with_parent(mut self, parent: Option<Uuid>) -> Self {
        self.metadata.parent_id = parent.map(IdText);
        self
    }

    /// The type of the event, which is also its name in an event stream.
    pub(crate) fn event_type(&self) -> &'a str {
        self.metadata.event_type
    }
}

/// Declares the types that the client library uses.
#[cfg(test)]
pub(super) fn declare(out: &mut Declarations) {
    out.of::<AgentMessageDto<'_>>();
    out.of::<PromptImageDto>();
    out.of::<MetadataDto<'_>>();
    out.of::<ContentDto<'_>>();
    out.of::<BlockDto<'_>>();
}
