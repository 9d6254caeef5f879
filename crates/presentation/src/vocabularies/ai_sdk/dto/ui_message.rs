//! Whole messages, as `useChat` keeps them (`UIMessage`).

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokenrail_domain::{AgentId, TurnNumber};

use super::{StartDto, Yes};
use crate::json::IdText;

/// The message of the user that began a turn.
#[derive(Debug, Serialize)]
pub(crate) struct UserMessageDto<'a> {
    id: PromptId,
    role: &'static str,
    metadata: StartDto,
    parts: [UiPart<'a>; 1],
}

impl<'a> UserMessageDto<'a> {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, prompt: &'a str) -> Self {
        Self {
            id: PromptId(agent, turn),
            role: "user",
            metadata: StartDto { agent_id: agent.into(), turn: turn.0 },
            parts: [UiPart::Prompt { text: prompt }],
        }
    }
}

/// The same each time the message is read. The id that the client chose is not saved.
#[derive(Debug)]
struct PromptId(AgentId, TurnNumber);

impl Serialize for PromptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("prompt-{}-{}", self.0, self.1))
    }
}

/// The answer to a turn.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerDto<'a> {
    pub(crate) id: IdText,
    pub(crate) role: &'static str,
    pub(crate) metadata: &'a Value,
    pub(crate) parts: &'a [UiPart<'static>],
}

/// Added to the metadata of a message that does not have all parts of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct TruncatedDto {
    pub(crate) truncated: Yes,
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum UiPart<'a> {
    #[serde(rename = "text")]
    Prompt {
        text: &'a str,
    },
    StepStart,
    Text(WordsDto),
    Reasoning(WordsDto),
    DynamicTool(Box<ToolPartDto>),
    #[serde(untagged)]
    Data(DataPartDto),
}

/// Text or reasoning.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WordsDto {
    pub(crate) text: String,
    pub(crate) state: WordsState,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WordsState {
    #[default]
    Streaming,
    Done,
}

/// A call of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolPartDto {
    pub(crate) tool_name: String,
    pub(crate) tool_call_id: String,
    pub(crate) state: ToolState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_text: Option<String>,
    pub(crate) provider_executed: Yes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call_provider_metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalDto>,
}

impl ToolPartDto {
    pub(crate) fn new(call: &str, name: &str) -> Self {
        Self {
            tool_name: name.to_owned(),
            tool_call_id: call.to_owned(),
            state: ToolState::InputStreaming,
            input: None,
            output: None,
            error_text: None,
            provider_executed: Yes,
            call_provider_metadata: None,
            approval: None,
        }
    }

    /// The call, without a result.
    pub(crate) fn begin(&mut self, name: &str, state: ToolState, input: Option<Box<RawValue>>) {
        name.clone_into(&mut self.tool_name);
        self.input = input;
        self.end(state);
    }

    /// Another state, with the result that follows.
    pub(crate) fn end(&mut self, state: ToolState) {
        self.state = state;
        self.output = None;
        self.error_text = None;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolState {
    InputStreaming,
    InputAvailable,
    ApprovalRequested,
    ApprovalResponded,
    OutputAvailable,
    OutputError,
    OutputDenied,
}

/// The permission request about a call.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalDto {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// A part of Tokenrail's own, written as its chunk is.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct DataPartDto(pub(crate) Box<RawValue>);
