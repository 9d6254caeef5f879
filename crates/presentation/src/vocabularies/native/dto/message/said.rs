//! What the body of an event becomes in JSON.

use std::borrow::Cow;

use tokenrail_domain::{
    AgentError, AgentId, CompleteMessage, ContentBlock, EventBody, MessageOrdinal, Notice, Part, ToolCall,
    ToolResult, TurnNumber, TurnResult, UnifiedPatch, Usage, message_id,
};

use super::{BlockDto, ContentDto};
use super::{MetadataDto, PromptImageDto};
use crate::json::{AgentErrorDto, IdText, Json};

/// What the body of an event becomes in JSON.
pub(super) struct MessageFields<'a> {
    pub(super) kind: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) content: ContentDto<'a>,
    pub(super) metadata: MetadataDto<'a>,
}

pub(super) fn first_sequence(body: &EventBody) -> Option<u64> {
    match body {
        EventBody::Message(message) => message.first_sequence.map(|first| first.0),
        _ => None,
    }
}

pub(super) fn said(agent: AgentId, turn: TurnNumber, body: &EventBody) -> MessageFields<'_> {
    let id = |message: MessageOrdinal| Some(IdText(message_id(agent, turn, message)));
    let delta = |event_type, message, part: Part, text| MessageFields {
        kind: "assistant",
        role: Some("assistant"),
        content: ContentDto::Text(Cow::Borrowed(text)),
        metadata: MetadataDto { message_id: id(message), part: Some(part.0), ..MetadataDto::of(event_type) },
    };
    match body {
        EventBody::UserMessage { content, images } => MessageFields {
            kind: "user",
            role: Some("user"),
            content: ContentDto::Text(Cow::Borrowed(content)),
            metadata: MetadataDto {
                turn: Some(turn.0),
                images: images.iter().map(PromptImageDto::from).collect(),
                ..MetadataDto::of("user_message")
            },
        },
        EventBody::TextDelta { message, part, text } => delta("content_delta", *message, *part, text),
        EventBody::ReasoningDelta { message, part, text } => delta("thinking_delta", *message, *part, text),
        EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
            let mut said = delta("tool_input_delta", *message, *part, fragment);
            said.metadata.tool_call_id = Some(call);
            said.metadata.tool_name = tool.as_deref();
            said
        }
        EventBody::Message(message) => complete(id(message.message), message),
        EventBody::ToolCall(call) => tool_call(call),
        EventBody::ToolResult(result) => tool_result(result),
        EventBody::Usage(usage) => used(usage),
        EventBody::Notice(notice) => {
            let Notice { subtype, data } = &**notice;
            if Notice::is_about_a_question(subtype) {
                let content = ContentDto::Given(Json(data));
                return MessageFields { content, ..system(MetadataDto::of(subtype)) };
            }
            system(MetadataDto { data: Some(Json(data)), ..MetadataDto::of(subtype) })
        }
        EventBody::Abandoned { message } => {
            system(MetadataDto { message_id: id(*message), ..MetadataDto::of("abandoned") })
        }
        EventBody::Error(error) => failure(error),
        EventBody::TurnResult(result) => turn_result(turn, result),
    }
}

fn complete(id: Option<IdText>, message: &CompleteMessage) -> MessageFields<'_> {
    let CompleteMessage { message: _, blocks, first_sequence: _, outcome, parent_call } = message;
    let content = match &blocks[..] {
        [ContentBlock::Text(text)] => ContentDto::Text(Cow::Borrowed(text)),
        blocks if blocks.iter().all(|block| block.as_text().is_some()) => {
            ContentDto::Text(Cow::Owned(message.text()))
        }
        blocks => ContentDto::Blocks(blocks.iter().map(BlockDto::from).collect()),
    };
    MessageFields {
        kind: "assistant",
        role: Some("assistant"),
        content,
        metadata: MetadataDto {
            message_id: id,
            outcome: Some(outcome.as_str()),
            parent_tool_call_id: parent_call.as_deref(),
            ..MetadataDto::of("message")
        },
    }
}

fn tool_call(made: &ToolCall) -> MessageFields<'_> {
    let ToolCall { call, tool, input, parent_call } = made;
    MessageFields {
        kind: "tool",
        role: Some("tool"),
        content: ContentDto::Block(BlockDto::ToolUse { id: call, name: tool, input: Json(input) }),
        metadata: MetadataDto {
            tool_call_id: Some(call),
            tool_name: Some(tool),
            parent_tool_call_id: parent_call.as_deref(),
            ..MetadataDto::of("tool_use")
        },
    }
}

fn tool_result(result: &ToolResult) -> MessageFields<'_> {
    let ToolResult { call, content, is_error, parent_call, patch } = result;
    MessageFields {
        kind: "user",
        role: Some("user"),
        content: ContentDto::Given(Json(content)),
        metadata: MetadataDto {
            tool_call_id: Some(call),
            is_error: Some(*is_error),
            parent_tool_call_id: parent_call.as_deref(),
            patch: patch.as_ref().map(UnifiedPatch::as_str),
            ..MetadataDto::of("tool_result")
        },
    }
}

fn used(usage: &Usage) -> MessageFields<'_> {
    let Usage { stop_reason, usage } = usage;
    system(MetadataDto {
        stop_reason: stop_reason.as_deref(),
        usage: Some(Json(usage)),
        ..MetadataDto::of("message_delta")
    })
}

fn system(metadata: MetadataDto<'_>) -> MessageFields<'_> {
    MessageFields {
        kind: "system",
        role: Some("system"),
        content: ContentDto::Text(Cow::Borrowed("")),
        metadata,
    }
}

fn failure(error: &AgentError) -> MessageFields<'_> {
    MessageFields {
        kind: "error",
        role: None,
        content: ContentDto::Text(Cow::Borrowed(&error.text)),
        metadata: MetadataDto {
            error: Some(AgentErrorDto { message: None, ..AgentErrorDto::from(error) }),
            ..MetadataDto::of("error")
        },
    }
}

fn turn_result(turn: TurnNumber, result: &TurnResult) -> MessageFields<'_> {
    let TurnResult { outcome, text, duration_ms, num_turns, cost_usd, usage, message_count, error, origin } =
        result;
    MessageFields {
        kind: "response",
        role: None,
        content: ContentDto::Text(Cow::Borrowed(text)),
        metadata: MetadataDto {
            outcome: Some(outcome.as_str()),
            usage: usage.as_ref().map(Json),
            error: error.as_ref().map(AgentErrorDto::from),
            turn: Some(turn.0),
            duration_ms: Some(*duration_ms),
            num_turns: *num_turns,
            cost_usd: *cost_usd,
            message_count: Some(*message_count),
            origin: origin.as_deref(),
            ..MetadataDto::of("result")
        },
    }
}

impl<'a> MetadataDto<'a> {
    fn of(event_type: &'a str) -> Self {
        Self { event_type, ..Self::default() }
    }
}

impl<'a> From<&'a ContentBlock> for BlockDto<'a> {
    fn from(block: &'a ContentBlock) -> Self {
        match block {
            ContentBlock::Text(text) => Self::Text { text },
            ContentBlock::Reasoning(text) => Self::Reasoning { text },
            ContentBlock::ToolUse { call, tool, input } => {
                Self::ToolUse { id: call, name: tool, input: Json(input) }
            }
            ContentBlock::Other(block) => Self::Other(Json(block)),
        }
    }
}
