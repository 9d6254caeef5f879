//! The JSON names of the AI SDK: UI message chunks, the bodies of its requests, and the frames of its WebSocket.

mod foreign;
mod history;
mod id;
mod request;
mod ui_message;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::json::{AgentErrorDto, IdText};

pub(crate) use foreign::{ForeignJson, text_of};
pub(crate) use request::{ChatBody, ChatFrame, ChatRequest, Saying, chat_frame, chat_request};
pub(crate) use ui_message::{
    AnswerDto, ApprovalDto, DataPartDto, ToolPartDto, ToolState, TruncatedDto, UiPart, UserMessageDto,
    WordsDto, WordsState,
};

/// One UI message chunk. A client refuses a chunk with an unknown type or an unexpected `null`. A client of version 5
/// also refuses unknown field names. Everything outside of the portable set is therefore sent only to clients that have
/// named their version.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Chunk<'a> {
    Start {
        message_id: IdText,
        message_metadata: StartDto,
    },
    StartStep,
    FinishStep,
    /// Discards what the step has sent so far (from 7.0.70 on).
    ResetStep,
    TextStart {
        id: PartId,
    },
    TextDelta {
        id: PartId,
        delta: &'a str,
    },
    TextEnd {
        id: PartId,
    },
    ReasoningStart {
        id: PartId,
    },
    ReasoningDelta {
        id: PartId,
        delta: &'a str,
    },
    ReasoningEnd {
        id: PartId,
    },
    ToolInputStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        provider_executed: Yes,
        dynamic: Yes,
    },
    ToolInputDelta {
        tool_call_id: &'a str,
        input_text_delta: &'a str,
    },
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: ForeignJson<'a>,
        provider_executed: Yes,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<ToolMetadataDto<'a>>,
        dynamic: Yes,
    },
    /// From version 6 on.
    ToolInputError {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: ForeignJson<'a>,
        error_text: &'a str,
        provider_executed: Yes,
        dynamic: Yes,
    },
    ToolOutputAvailable {
        tool_call_id: &'a str,
        output: ForeignJson<'a>,
        provider_executed: Yes,
        dynamic: Yes,
    },
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: &'a str,
        provider_executed: Yes,
        dynamic: Yes,
    },
    /// The agent requests permission for this call (from version 6 on).
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    /// `reason` names the source of the answer (version 7).
    ToolApprovalResponse {
        approval_id: &'a str,
        approved: bool,
        reason: &'a str,
        provider_executed: Yes,
    },
    /// From version 6 on.
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    MessageMetadata {
        message_metadata: UsageDto<'a>,
    },
    #[serde(rename = "data-notice")]
    Notice {
        data: NoticeDto<'a>,
        /// The client receives the notice, but does not keep it in the message.
        transient: Yes,
    },
    #[serde(rename = "data-error")]
    NonFatal {
        data: AgentErrorDto<'a>,
    },
    #[serde(rename = "data-abandoned")]
    Abandoned {
        data: AbandonedDto,
    },
    #[serde(rename = "data-subagent")]
    SubAgent {
        id: IdText,
        data: SubAgentDto<'a>,
    },
    #[serde(rename = "data-content")]
    Content {
        data: ForeignJson<'a>,
    },
    #[serde(rename = "data-tool-result")]
    StrayResult {
        data: StrayResultDto<'a>,
    },
    Error {
        error_text: &'a str,
    },
    Abort {
        /// From version 7 on.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    },
    Finish {
        /// From version 6 on.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        message_metadata: FinishDto<'a>,
    },
}

/// Always `true`. The agent runs its tools itself, so a client must not run them (`providerExecuted`). The server does
/// not know in advance which tools the agent has (`dynamic`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Yes;

impl Serialize for Yes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

/// The id of a part: the id of its message, and the number of the part in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartId {
    pub(crate) message: Uuid,
    pub(crate) part: u32,
}

impl Serialize for PartId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.message.hyphenated(), self.part))
    }
}

/// Why a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
    /// From 7.0.149 on.
    Interrupted,
    Other,
}

/// Identifies the message in the rest of the API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartDto {
    pub(crate) agent_id: IdText,
    pub(crate) turn: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageDto<'a> {
    pub(crate) usage: ForeignJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FinishDto<'a> {
    pub(crate) outcome: &'static str,
    pub(crate) duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) num_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<ForeignJson<'a>>,
}

/// Properties of a tool call for which the SDK has no field. They are under a name of Tokenrail's own.
#[derive(Debug, Serialize)]
pub(crate) struct ToolMetadataDto<'a> {
    pub(crate) tokenrail: ParentDto<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParentDto<'a> {
    pub(crate) parent_tool_call_id: &'a str,
}

#[derive(Debug, Serialize)]
pub(crate) struct NoticeDto<'a> {
    pub(crate) subtype: &'a str,
    pub(crate) data: ForeignJson<'a>,
}

/// The parts that were sent and that the client must discard. Their ids begin with the id of this message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AbandonedDto {
    pub(crate) message_id: IdText,
    pub(crate) parts: Vec<PartId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubAgentDto<'a> {
    pub(crate) parent_tool_call_id: &'a str,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reasoning: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StrayResultDto<'a> {
    pub(crate) tool_call_id: &'a str,
    pub(crate) output: ForeignJson<'a>,
    pub(crate) is_error: bool,
}

/// A frame to a WebSocket client.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum ChatReply<'a> {
    /// The chat to resume has a response to stream.
    Start {
        request_id: &'a str,
    },
    Chunk {
        request_id: &'a str,
        sequence: u64,
        chunk: &'a Chunk<'a>,
    },
    End {
        request_id: &'a str,
    },
    Error {
        request_id: &'a str,
        error_text: &'a str,
    },
    NoActive {
        request_id: &'a str,
    },
}
