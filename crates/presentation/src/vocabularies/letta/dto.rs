//! What Letta's clients send and receive. An optional field that is absent is `null`, unless its type skips it.

mod params;
mod requests;
mod resources;

use serde::{Deserialize, Serialize};
use tokenrail_domain::JsonText;
use utoipa::ToSchema;

use crate::json::{IsoTime, TokenUsage};

pub(crate) use params::{PageQuery, SayHeaders, SayQuery};
pub(crate) use requests::{
    Approval, LettaAgentBody, LettaCancelBody, LettaMessageBody, LettaResumeBody, Message, Resume, created,
    message, named_runs, resume,
};
pub(crate) use resources::{ConversationDto, HealthDto, LettaAgentDto, ModelDto, RUN_STATUSES, RunDto};

/// One frame of a stream, or one message of a history.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LettaMessage {
    pub(crate) id: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) date: IsoTime,
    #[serde(flatten)]
    pub(crate) said: LettaSaid,
    /// The same for all pieces of one part.
    pub(crate) otid: Option<String>,
    pub(crate) run_id: String,
    pub(crate) step_id: Option<String>,
    /// The cursor to resume from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) seq_id: Option<u64>,
}

/// The content of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "message_type", rename_all = "snake_case")]
pub(crate) enum LettaSaid {
    #[serde(rename = "user_message")]
    User { content: String },
    #[serde(rename = "assistant_message")]
    Assistant { content: String },
    #[serde(rename = "reasoning_message")]
    Reasoning { reasoning: String, source: &'static str },
    #[serde(rename = "hidden_reasoning_message")]
    HiddenReasoning { state: &'static str, hidden_reasoning: Option<String> },
    #[serde(rename = "tool_call_message")]
    ToolCall { tool_call: LettaToolCall, tool_calls: LettaToolCalls },
    #[serde(rename = "tool_return_message")]
    ToolReturn(ToolReturn),
    #[serde(rename = "approval_request_message")]
    ApprovalRequest {
        tool_call: LettaToolCall,
        tool_calls: LettaToolCalls,
        /// An extension of Tokenrail: send the answer to `/api/agents/{id}/permissions/{request_id}`.
        request_id: String,
    },
    #[serde(rename = "approval_response_message")]
    ApprovalResponse {
        approve: bool,
        /// The id of the approval request's message.
        approval_request_id: String,
        /// Who has answered.
        reason: String,
        approvals: [LettaApproval; 1],
    },
}

/// Whether a tool call was allowed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LettaApproval {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) tool_call_id: String,
    pub(crate) approve: bool,
    pub(crate) reason: String,
}

/// A tool call, or a piece of one. Fields that a piece does not contain are absent.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LettaToolCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) arguments: Option<String>,
    pub(crate) tool_call_id: String,
}

/// The same call in the newer field `tool_calls`: an object for a piece, a list for a whole call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LettaToolCalls {
    Piece(LettaToolCall),
    Whole([LettaToolCall; 1]),
}

/// The result of a tool call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LettaToolReturn)]
#[expect(clippy::struct_field_names, reason = "the names are those of the protocol")]
pub(crate) struct ToolReturn {
    pub(crate) tool_return: String,
    pub(crate) status: &'static str,
    pub(crate) tool_call_id: String,
    pub(crate) stdout: Option<Vec<String>>,
    pub(crate) stderr: Option<Vec<String>>,
    pub(crate) tool_returns: [OneToolReturn; 1],
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LettaOneToolReturn)]
pub(crate) struct OneToolReturn {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) tool_call_id: String,
    pub(crate) status: &'static str,
    pub(crate) tool_return: String,
    pub(crate) stdout: Option<Vec<String>>,
    pub(crate) stderr: Option<Vec<String>>,
}

impl ToolReturn {
    pub(crate) fn new(call: String, status: &'static str, text: String) -> Self {
        let one = OneToolReturn {
            kind: "tool",
            tool_call_id: call.clone(),
            status,
            tool_return: text.clone(),
            stdout: None,
            stderr: None,
        };
        let tool_returns = [one];
        Self { tool_return: text, status, tool_call_id: call, stdout: None, stderr: None, tool_returns }
    }
}

/// How a run has ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LettaStopReason)]
pub(crate) struct StopReasonDto {
    pub(crate) message_type: &'static str,
    pub(crate) stop_reason: &'static str,
}

impl StopReasonDto {
    pub(crate) fn new(stop_reason: &'static str) -> Self {
        Self { message_type: "stop_reason", stop_reason }
    }
}

/// The token usage of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LettaUsage)]
pub(crate) struct UsageStatistics {
    pub(crate) message_type: &'static str,
    pub(crate) completion_tokens: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) total_tokens: u64,
    pub(crate) step_count: u32,
    pub(crate) cached_input_tokens: u64,
    pub(crate) cache_write_tokens: u64,
    pub(crate) reasoning_tokens: Option<u64>,
    pub(crate) run_ids: [String; 1],
}

impl UsageStatistics {
    /// The usage of a run that has used nothing yet.
    pub(crate) fn nothing(run: String) -> Self {
        Self {
            message_type: "usage_statistics",
            completion_tokens: 0,
            prompt_tokens: 0,
            total_tokens: 0,
            step_count: 0,
            cached_input_tokens: 0,
            cache_write_tokens: 0,
            reasoning_tokens: None,
            run_ids: [run],
        }
    }

    /// Adds the usage that an agent reports, as far as it is understood. Cached tokens are a part of the prompt.
    pub(crate) fn add(&mut self, usage: &JsonText) {
        let mut sum = TokenUsage {
            input: self.prompt_tokens,
            output: self.completion_tokens,
            cached: self.cached_input_tokens,
            cache_written: self.cache_write_tokens,
        };
        sum.add(usage);
        let TokenUsage { input, output, cached, cache_written } = sum;
        (self.prompt_tokens, self.completion_tokens) = (input, output);
        (self.cached_input_tokens, self.cache_write_tokens) = (cached, cache_written);
        self.total_tokens = sum.total();
    }
}

/// Reasoning that the model has encrypted.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Redacted {
    RedactedThinking { data: String },
}

/// Reads a block of encrypted reasoning. `None` if the block is of another type.
pub(crate) fn redacted(block: &JsonText) -> Option<LettaSaid> {
    let Redacted::RedactedThinking { data } = serde_json::from_str(block.as_str()).ok()?;
    Some(LettaSaid::HiddenReasoning { state: "redacted", hidden_reasoning: Some(data) })
}

/// The run has failed. This is the only frame with a name (`error`).
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ErrorMessage<'a> {
    pub(crate) message_type: &'static str,
    pub(crate) run_id: &'a str,
    pub(crate) error_type: &'a str,
    pub(crate) message: &'a str,
    pub(crate) detail: Option<&'a str>,
}

impl<'a> ErrorMessage<'a> {
    pub(crate) fn new(
        run_id: &'a str,
        error_type: &'a str,
        message: &'a str,
        detail: Option<&'a str>,
    ) -> Self {
        Self { message_type: "error_message", run_id, error_type, message, detail }
    }
}

/// A frame that keeps the connection alive.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ping<'a> {
    pub(crate) id: String,
    pub(crate) date: IsoTime,
    pub(crate) message_type: &'static str,
    pub(crate) run_id: &'a str,
    /// The number of the last event that was sent.
    pub(crate) seq_id: u64,
}

impl<'a> Ping<'a> {
    pub(crate) fn new(run_id: &'a str, date: IsoTime, seq_id: u64) -> Self {
        Self { id: format!("message-ping-{seq_id}"), date, message_type: "ping", run_id, seq_id }
    }
}

/// The response to a message that is not streamed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LettaResponse {
    pub(crate) messages: Vec<LettaMessage>,
    pub(crate) stop_reason: StopReasonDto,
    pub(crate) usage: UsageStatistics,
}

/// Why a request was refused.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LettaProblem<'a> {
    pub(crate) detail: &'a str,
}
