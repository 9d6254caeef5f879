//! Events. A client refuses a run with an unexpected `null`.

use serde::Serialize;
use tokenrail_domain::{Timestamp, TurnResult};
use uuid::Uuid;

use super::{CustomDto, InterruptDto, PlanDto};
use crate::json::{IdText, TokenUsage};
use crate::vocabularies::ag_ui::cursor::ThreadCursor;

/// The version of the protocol.
const VERSION: &str = "1.0";

/// The greatest whole number that clients accept.
const GREATEST: u64 = (1 << 53) - 1;

/// An event as it is sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventDto<'a> {
    #[serde(flatten)]
    event: AgUiEvent<'a>,
    /// The tool call whose sub-agent the event is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<&'a str>,
    /// Milliseconds since the epoch.
    timestamp: i64,
    metadata: EventMetadata,
}

/// The extension that the protocol leaves to each server, under a name of its own.
#[derive(Debug, Serialize)]
pub(crate) struct EventMetadata {
    pub(crate) tokenrail: PlaceDto,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlaceDto {
    pub(crate) cursor: ThreadCursor,
    /// Whether the result of a tool call is an error.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) is_error: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl<'a> EventDto<'a> {
    pub(crate) fn new(
        event: AgUiEvent<'a>,
        subagent_run_id: Option<&'a str>,
        at: Timestamp,
        place: PlaceDto,
    ) -> Self {
        let greatest = GREATEST as i64;
        let metadata = EventMetadata { tokenrail: place };
        Self { event, subagent_run_id, timestamp: at.0.clamp(-greatest, greatest), metadata }
    }

    pub(crate) fn cursor(&self) -> ThreadCursor {
        self.metadata.tokenrail.cursor
    }
}

/// What happens in a run.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum AgUiEvent<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
        protocol_version: ProtocolVersion,
        /// What the user said, for clients that do not know it.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<InputDto<'a>>,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<OutcomeDto<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<RunResultDto<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<[RunUsageDto; 1]>,
    },
    RunError {
        message: &'a str,
        code: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<[RunUsageDto; 1]>,
    },
    TextMessageStart {
        message_id: &'a str,
        role: Assistant,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: Reasoning,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<&'a str>,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: Tool,
    },
    SubagentStarted {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<&'a str>,
        parent_tool_call_id: &'a str,
    },
    SubagentFinished {
        outcome: SubAgentOutcomeDto,
    },
    SubagentError {
        message: &'a str,
    },
    /// A message of its own in the thread, which a later one with the same id replaces.
    ActivitySnapshot {
        message_id: &'a str,
        activity_type: Plan,
        content: PlanDto<'a>,
    },
    Custom {
        name: &'static str,
        value: CustomDto<'a>,
    },
}

/// A word that is always the same.
macro_rules! word {
    ($name:ident, $word:expr) => {
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name;

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($word)
            }
        }
    };
}

word!(ProtocolVersion, VERSION);
word!(Assistant, "assistant");
word!(Reasoning, "reasoning");
word!(Tool, "tool");
word!(Plan, "PLAN");
word!(User, "user");

/// The input of a run, as far as it is repeated.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputDto<'a> {
    thread_id: &'a str,
    run_id: &'a str,
    messages: [EchoedMessageDto<'a>; 1],
    tools: [(); 0],
    context: [(); 0],
}

/// What the user said.
#[derive(Debug, Serialize)]
pub(crate) struct EchoedMessageDto<'a> {
    id: IdText,
    role: User,
    content: &'a str,
}

impl<'a> InputDto<'a> {
    pub(crate) fn new(thread_id: &'a str, run_id: &'a str, id: Uuid, content: &'a str) -> Self {
        let message = EchoedMessageDto { id: IdText(id), role: User, content };
        Self { thread_id, run_id, messages: [message], tools: [], context: [] }
    }
}

/// Why a run ended that did not fail.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum OutcomeDto<'a> {
    Success,
    Interrupt { interrupts: [InterruptDto<'a>; 1] },
    Cancelled,
}

/// What the turn of a run came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunResultDto<'a> {
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
}

impl<'a> RunResultDto<'a> {
    pub(crate) fn new(result: &TurnResult, stop_reason: Option<&'a str>) -> Self {
        let TurnResult { duration_ms, num_turns, cost_usd, .. } = *result;
        Self { duration_ms: duration_ms.min(GREATEST), num_turns, cost_usd, stop_reason }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names are those of the protocol")]
pub(crate) struct RunUsageDto {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
}

impl RunUsageDto {
    /// `None` if the agent has reported nothing.
    pub(crate) fn of(usage: TokenUsage) -> Option<[Self; 1]> {
        let TokenUsage { input, output, cached, cache_written } = usage;
        let is_reported = usage != TokenUsage::default();
        is_reported.then(|| {
            [Self {
                input_tokens: input.min(GREATEST),
                output_tokens: output.min(GREATEST),
                total_tokens: usage.total().min(GREATEST),
                cached_input_tokens: cached.min(GREATEST),
                cache_write_input_tokens: cache_written.min(GREATEST),
            }]
        })
    }
}

/// Why a sub-agent stopped that did not fail.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum SubAgentOutcomeDto {
    Success,
    /// It goes on in the next run of the turn.
    Suspended,
}
