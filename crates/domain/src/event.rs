//! One numbered entry of an agent's journal.

use bytes::Bytes;
use uuid::Uuid;

use crate::ids::{derive, message_id};
use crate::{
    AgentError, AgentId, JsonText, MessageOrdinal, PromptImage, Sequence, Timestamp, TurnNumber, TurnOutcome,
    UnifiedPatch,
};

/// One numbered entry of an agent's journal. Its id is computed: see [`event_id`].
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub sequence: Sequence,
    pub at: Timestamp,
    pub turn: TurnNumber,
    pub body: EventBody,
    /// The line or lines of output that the event came from, byte for byte, joined by `\n`. Lines without an event of
    /// their own precede the lines of the next event.
    pub raw: Option<Bytes>,
}

/// The id of an event. If the event completes a message, it is the id of that message. Otherwise it is computed from
/// the agent, the sequence and the time. A UUID version 7.
pub fn event_id(agent: AgentId, event: &Event) -> Uuid {
    match event.body.completed() {
        Some(message) => message_id(agent, event.turn, message),
        None => derive(agent, event.at.0.max(0).unsigned_abs(), event.sequence.0),
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// A prompt, as the client sent it.
    UserMessage {
        content: String,
        /// The images of the prompt, in order. The store has them.
        images: Vec<PromptImage>,
    },
    /// More text of a message.
    TextDelta {
        message: MessageOrdinal,
        part: Part,
        text: String,
    },
    /// More of the model's reasoning.
    ReasoningDelta {
        message: MessageOrdinal,
        part: Part,
        text: String,
    },
    /// More of the input of a tool call: a fragment of JSON. `tool` is the tool's name, on the first fragment only.
    ToolInputDelta {
        message: MessageOrdinal,
        part: Part,
        call: String,
        tool: Option<String>,
        fragment: String,
    },
    /// A complete message. It replaces its deltas.
    Message(Box<CompleteMessage>),
    ToolCall(Box<ToolCall>),
    ToolResult(Box<ToolResult>),
    Usage(Box<Usage>),
    Notice(Box<Notice>),
    /// The agent discarded a message and sends it again. A client that has shown its deltas must discard them.
    Abandoned {
        message: MessageOrdinal,
    },
    Error(Box<AgentError>),
    /// The last event of a turn. Each turn has exactly one.
    TurnResult(Box<TurnResult>),
}

impl EventBody {
    /// Whether the event is a delta of a message.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolInputDelta { .. })
    }

    /// The message that the event is a delta of.
    pub fn delta_of(&self) -> Option<MessageOrdinal> {
        match self {
            Self::TextDelta { message, .. }
            | Self::ReasoningDelta { message, .. }
            | Self::ToolInputDelta { message, .. } => Some(*message),
            _ => None,
        }
    }

    /// The approximate size of its text, in bytes.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::UserMessage { content, images: _ } => content.len(),
            Self::TextDelta { text, .. } | Self::ReasoningDelta { text, .. } => text.len(),
            Self::ToolInputDelta { call, fragment, .. } => call.len() + fragment.len(),
            Self::Message(message) => message.blocks.iter().map(ContentBlock::text_bytes).sum(),
            Self::ToolCall(call) => call.input.as_str().len(),
            Self::ToolResult(result) => result.text_bytes(),
            Self::Usage(usage) => usage.usage.as_str().len(),
            Self::Notice(notice) => notice.data.as_str().len(),
            Self::Abandoned { .. } => 0,
            Self::Error(error) => error.text.len(),
            Self::TurnResult(result) => result.text.len(),
        }
    }

    /// The message that the event completes.
    pub fn completed(&self) -> Option<MessageOrdinal> {
        match self {
            Self::Message(message) => Some(message.message),
            _ => None,
        }
    }
}

/// The index of a content block in its message, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Part(pub u32);

/// One message as shown on screen. Nothing more is added to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompleteMessage {
    pub message: MessageOrdinal,
    /// In the order of their parts. The text equals the concatenation of the text deltas.
    pub blocks: Vec<ContentBlock>,
    /// The sequence of its first delta. `None` if the message had no deltas.
    pub first_sequence: Option<Sequence>,
    pub outcome: MessageOutcome,
    /// The tool call whose sub-agent sent the message.
    pub parent_call: Option<String>,
}

impl CompleteMessage {
    /// The concatenation of its text blocks.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// One part of a complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentBlock {
    Text(String),
    Reasoning(String),
    /// `input` is a JSON object. If the call was cut short, it is a JSON string with the fragments.
    ToolUse {
        call: String,
        tool: String,
        input: JsonText,
    },
    /// A block of a type that Tokenrail does not know, unchanged.
    Other(JsonText),
}

impl ContentBlock {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::ToolUse { input, .. } => input.as_str().len(),
            Self::Other(given) => given.as_str().len(),
        }
    }
}

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageOutcome {
    Complete,
    Failed,
    Cancelled,
    Interrupted,
}

impl MessageOutcome {
    pub const ALL: [Self; 4] = [Self::Complete, Self::Failed, Self::Cancelled, Self::Interrupted];

    /// The name of the outcome in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The inverse of [`MessageOutcome::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// The outcome of a message that is still open when its turn ends: the agent never sent its end.
    pub fn of_open_message(turn: TurnOutcome) -> Self {
        match turn {
            TurnOutcome::Completed | TurnOutcome::Failed => Self::Failed,
            TurnOutcome::Cancelled => Self::Cancelled,
            TurnOutcome::Interrupted => Self::Interrupted,
        }
    }
}

/// A tool call by the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub call: String,
    pub tool: String,
    /// Unchanged from the agent: nearly always a JSON object.
    pub input: JsonText,
    /// The tool call whose sub-agent made this call.
    pub parent_call: Option<String>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub call: String,
    /// Unchanged from the agent: a JSON string, or an array of content blocks.
    pub content: JsonText,
    pub is_error: bool,
    pub parent_call: Option<String>,
    /// What the call changed in files. `None` if the agent does not report it with the numbers of the lines, if it is
    /// too long, or if nothing changed.
    pub patch: Option<UnifiedPatch>,
}

impl ToolResult {
    fn text_bytes(&self) -> usize {
        self.content.as_str().len() + self.patch.as_ref().map_or(0, |patch| patch.as_str().len())
    }
}

/// The token usage of a model request, as far as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub stop_reason: Option<String>,
    /// Unchanged from the agent: a JSON object.
    pub usage: JsonText,
}

/// Information that the agent reports about itself: `init`, `api_retry`, `status` …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The agent's name for it, or Tokenrail's: `init`, `api_retry`, `status` …
    pub subtype: String,
    /// Unchanged from the agent: a JSON object.
    pub data: JsonText,
}

impl Notice {
    /// The agent requests a permission and waits. Fields: `requestId`, `toolCallId`?, `toolName`, `input`, `options`,
    /// each with `optionId`, `name` and `kind`, and `askedAt`?, `expiresAt`? and `defaultOptionId`?.
    pub const PERMISSION_REQUEST: &'static str = "permission_request";
    /// The permission request is no longer open. Fields: `requestId`, `optionId`? and `by`.
    pub const PERMISSION_RESOLVED: &'static str = "permission_resolved";

    /// Whether the notice is a permission request or reports that one was resolved. These subtypes are reserved for
    /// Tokenrail: an agent must not be able to imitate a permission request.
    pub fn is_about_a_question(subtype: &str) -> bool {
        matches!(subtype, Self::PERMISSION_REQUEST | Self::PERMISSION_RESOLVED)
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    pub outcome: TurnOutcome,
    /// The final text, as the agent repeats it.
    pub text: String,
    /// From the start of the turn to its end.
    pub duration_ms: u64,
    /// The number of model requests in the turn, as the agent counts them.
    pub num_turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// Unchanged from the agent: a JSON object.
    pub usage: Option<JsonText>,
    /// The number of complete messages that the agent sent in this turn.
    pub message_count: u32,
    /// Why the turn failed. `None` if it did not fail.
    pub error: Option<AgentError>,
    /// What started the turn if it was not a user, for example a background task of the agent.
    pub origin: Option<String>,
}
