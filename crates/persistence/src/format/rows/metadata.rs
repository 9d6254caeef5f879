//! The column `metadata`: the type of an event, and everything that is not its content.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_domain::{
    AgentError, CompleteMessage, ErrorClass, Event, EventBody, ImageType, JsonText, MessageOrdinal,
    MessageOutcome, Notice, PromptImage, Sequence, ToolCall, ToolResult, TurnOutcome, TurnResult,
    UnifiedPatch, Usage,
};

use super::content;

/// The fields of all events. Each event has only its own.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct RowMetadata {
    event_type: String,
    pub(super) turn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<u32>,
    /// The number of blocks in `content`, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// What a tool call changed in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u32>,
    /// The number as text: `serde_json` may lose the last bit of a number that it parses.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorJson>,
    /// The images of a user message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageJson {
    media_type: String,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorJson {
    class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Only if it is not the row's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    recoverable: bool,
}

const USER_MESSAGE: &str = "user_message";
const MESSAGE: &str = "message";
const TOOL_USE: &str = "tool_use";
const TOOL_RESULT: &str = "tool_result";
const MESSAGE_DELTA: &str = "message_delta";
const ABANDONED: &str = "abandoned";
const ERROR: &str = "error";
const RESULT: &str = "result";

impl RowMetadata {
    pub(super) fn of(event: &Event) -> serde_json::Result<Self> {
        let mut it = Self { turn: event.turn.0, ..Self::default() };
        match &event.body {
            EventBody::UserMessage { content: _, images } => {
                USER_MESSAGE.clone_into(&mut it.event_type);
                it.images = images.iter().map(ImageJson::of).collect();
            }
            EventBody::TextDelta { .. }
            | EventBody::ReasoningDelta { .. }
            | EventBody::ToolInputDelta { .. } => {}
            EventBody::Message(message) => it.set_message(message),
            EventBody::ToolCall(made) => {
                let ToolCall { call, tool, input: _, parent_call } = &**made;
                TOOL_USE.clone_into(&mut it.event_type);
                it.tool_call_id = Some(call.clone());
                it.tool_name = Some(tool.clone());
                it.parent_tool_call_id.clone_from(parent_call);
            }
            EventBody::ToolResult(result) => {
                let ToolResult { call, content: _, is_error, parent_call, patch } = &**result;
                TOOL_RESULT.clone_into(&mut it.event_type);
                it.tool_call_id = Some(call.clone());
                it.is_error = Some(*is_error);
                it.parent_tool_call_id.clone_from(parent_call);
                it.patch = patch.as_ref().map(|patch| patch.as_str().to_owned());
            }
            EventBody::Usage(spent) => {
                let Usage { stop_reason, usage } = &**spent;
                MESSAGE_DELTA.clone_into(&mut it.event_type);
                it.usage = Some(content::raw_json(usage)?);
                it.stop_reason.clone_from(stop_reason);
            }
            EventBody::Notice(notice) => {
                let Notice { subtype, data: _ } = &**notice;
                it.event_type.clone_from(subtype);
            }
            EventBody::Abandoned { message } => {
                ABANDONED.clone_into(&mut it.event_type);
                it.message = Some(message.0);
            }
            EventBody::Error(error) => {
                ERROR.clone_into(&mut it.event_type);
                it.error = Some(ErrorJson::of(error, None));
            }
            EventBody::TurnResult(result) => it.set_result(result)?,
        }
        Ok(it)
    }

    fn set_message(&mut self, message: &CompleteMessage) {
        let CompleteMessage { message, blocks, first_sequence: _, outcome, parent_call } = message;
        MESSAGE.clone_into(&mut self.event_type);
        self.message = Some(message.0);
        self.blocks = (!content::is_plain(blocks)).then_some(blocks.len());
        self.outcome = Some(outcome.as_str().to_owned());
        self.parent_tool_call_id.clone_from(parent_call);
    }

    fn set_result(&mut self, result: &TurnResult) -> serde_json::Result<()> {
        let TurnResult {
            outcome,
            text: _,
            duration_ms,
            num_turns,
            cost_usd,
            usage,
            message_count,
            error,
            origin,
        } = result;
        RESULT.clone_into(&mut self.event_type);
        self.outcome = Some(outcome.as_str().to_owned());
        self.duration_ms = Some(*duration_ms);
        self.num_turns = *num_turns;
        // JSON has no infinity and no NaN. Such a cost makes no sense and is not stored.
        let cost = cost_usd.filter(|cost| cost.is_finite()).map(|cost| cost.to_string());
        self.cost_usd = cost.map(RawValue::from_string).transpose()?;
        self.usage = usage.as_ref().map(content::raw_json).transpose()?;
        self.message_count = Some(*message_count);
        self.error = error.as_ref().map(|error| ErrorJson::of(error, Some(error.text.clone())));
        self.origin.clone_from(origin);
        Ok(())
    }

    /// The message that the event completes or abandons. Other events have none.
    pub(super) fn closed(&self) -> Option<u32> {
        self.message
    }

    /// Why a message stopped, as the agent reported it. Other events have no such reason.
    pub(super) fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_deref().filter(|_| self.event_type == MESSAGE_DELTA)
    }

    pub(super) fn into_body(
        self,
        kind: &str,
        content: String,
        first_sequence: Option<Sequence>,
    ) -> serde_json::Result<EventBody> {
        let parent_call = self.parent_tool_call_id.clone();
        Ok(match (kind, self.event_type.as_str()) {
            ("user", USER_MESSAGE) => {
                let images = self.images.into_iter().map(ImageJson::into_image);
                EventBody::UserMessage { content, images: images.collect::<Result<_, _>>()? }
            }
            ("assistant", MESSAGE) => EventBody::Message(Box::new(CompleteMessage {
                message: MessageOrdinal(there(self.message)?),
                blocks: content::blocks(content, self.blocks.is_some())?,
                first_sequence,
                outcome: there(self.outcome.as_deref().and_then(MessageOutcome::from_name))?,
                parent_call,
            })),
            ("tool", TOOL_USE) => {
                let (call, tool, input) = content::tool_use(&content)?;
                EventBody::ToolCall(Box::new(ToolCall { call, tool, input, parent_call }))
            }
            ("user", TOOL_RESULT) => EventBody::ToolResult(Box::new(ToolResult {
                call: there(self.tool_call_id)?,
                content: JsonText::new_unchecked(content),
                is_error: there(self.is_error)?,
                parent_call,
                patch: self.patch.map(UnifiedPatch::new_unchecked),
            })),
            ("system", _) => self.into_system(content),
            ("error", ERROR) => EventBody::Error(Box::new(there(self.error)?.into_error(content)?)),
            ("response", RESULT) => EventBody::TurnResult(Box::new(self.into_result(content)?)),
            _ => return there(None),
        })
    }

    /// A notice may have any type, even one of ours, but only ours have a usage or a message.
    fn into_system(self, content: String) -> EventBody {
        if let Some(usage) = self.usage {
            let usage = JsonText::new_unchecked(usage.get());
            return EventBody::Usage(Box::new(Usage { stop_reason: self.stop_reason, usage }));
        }
        if let Some(message) = self.message {
            return EventBody::Abandoned { message: MessageOrdinal(message) };
        }
        let data = JsonText::new_unchecked(content);
        EventBody::Notice(Box::new(Notice { subtype: self.event_type, data }))
    }

    fn into_result(self, text: String) -> serde_json::Result<TurnResult> {
        Ok(TurnResult {
            outcome: there(self.outcome.as_deref().and_then(TurnOutcome::from_name))?,
            text,
            duration_ms: there(self.duration_ms)?,
            num_turns: self.num_turns,
            cost_usd: self.cost_usd.map(|cost| there(cost.get().parse().ok())).transpose()?,
            usage: self.usage.map(|usage| JsonText::new_unchecked(usage.get())),
            message_count: there(self.message_count)?,
            error: self.error.map(|error| error.into_error(String::new())).transpose()?,
            origin: self.origin,
        })
    }
}

impl ImageJson {
    fn of(image: &PromptImage) -> Self {
        let PromptImage { media_type, bytes } = *image;
        Self { media_type: media_type.as_str().to_owned(), bytes }
    }

    fn into_image(self) -> serde_json::Result<PromptImage> {
        let Self { media_type, bytes } = self;
        Ok(PromptImage { media_type: there(ImageType::from_name(&media_type))?, bytes })
    }
}

impl ErrorJson {
    fn of(error: &AgentError, message: Option<String>) -> Self {
        let AgentError { class, code, text: _, retry_after_ms, recoverable } = error;
        Self {
            class: class.as_str().to_owned(),
            code: code.clone(),
            message,
            retry_after_ms: *retry_after_ms,
            recoverable: *recoverable,
        }
    }

    fn into_error(self, content: String) -> serde_json::Result<AgentError> {
        let Self { class, code, message, retry_after_ms, recoverable } = self;
        let class = there(ErrorClass::from_name(&class))?;
        Ok(AgentError { class, code, text: message.unwrap_or(content), retry_after_ms, recoverable })
    }
}

fn there<T>(value: Option<T>) -> serde_json::Result<T> {
    value.ok_or_else(|| serde_json::Error::custom("a field is missing or unknown"))
}
