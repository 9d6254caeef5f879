//! One numbered entry of an agent's journal.

use bytes::Bytes;

use crate::{JsonText, MessageOrdinal, Sequence, Timestamp, TurnNumber, TurnOutcome};

/// One numbered entry of an agent's journal. Its id is computed: see [`event_id`](crate::event_id).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub sequence: Sequence,
    pub at: Timestamp,
    pub turn: TurnNumber,
    pub body: EventBody,
    /// The line or lines it came from, byte for byte, joined by `\n`. Lines that display nothing are here too,
    /// in front of those of the next event that does.
    pub raw: Option<Bytes>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// A prompt, as the client sent it.
    UserMessage {
        content: String,
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
    /// A message is complete: it replaces its deltas.
    Message(Box<CompleteMessage>),
    ToolCall(Box<ToolCall>),
    ToolResult(Box<ToolResult>),
    Usage(Box<Usage>),
    Notice(Box<Notice>),
    /// The agent threw a message away and says it again: so must whoever has shown its deltas.
    Abandoned {
        message: MessageOrdinal,
    },
    Error(Box<AgentError>),
    /// The last event of a turn; each turn has exactly one.
    TurnResult(Box<TurnResult>),
}

impl EventBody {
    /// Whether it is a piece of a message that is still being said.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolInputDelta { .. })
    }

    /// The message of which it is a delta.
    pub fn delta_of(&self) -> Option<MessageOrdinal> {
        match self {
            Self::TextDelta { message, .. }
            | Self::ReasoningDelta { message, .. }
            | Self::ToolInputDelta { message, .. } => Some(*message),
            _ => None,
        }
    }

    /// About how many bytes of text it holds.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::UserMessage { content } => content.len(),
            Self::TextDelta { text, .. } | Self::ReasoningDelta { text, .. } => text.len(),
            Self::ToolInputDelta { call, fragment, .. } => call.len() + fragment.len(),
            Self::Message(message) => message.blocks.iter().map(ContentBlock::text_bytes).sum(),
            Self::ToolCall(call) => call.input.as_str().len(),
            Self::ToolResult(result) => result.content.as_str().len(),
            Self::Usage(usage) => usage.usage.as_str().len(),
            Self::Notice(notice) => notice.data.as_str().len(),
            Self::Abandoned { .. } => 0,
            Self::Error(error) => error.text.len(),
            Self::TurnResult(result) => result.text.len(),
        }
    }

    /// The message that it completes.
    pub fn completed(&self) -> Option<MessageOrdinal> {
        match self {
            Self::Message(message) => Some(message.message),
            _ => None,
        }
    }
}

/// The place of a content block in its message, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Part(pub u32);

/// One bubble on screen, as it stands when nothing more will be added.
#[derive(Debug, Clone, PartialEq)]
pub struct CompleteMessage {
    pub message: MessageOrdinal,
    /// In the order of their parts. The text equals the concatenation of the text deltas.
    pub blocks: Vec<ContentBlock>,
    /// The number of its first delta; none where it came whole.
    pub first_sequence: Option<Sequence>,
    pub outcome: MessageOutcome,
    /// The tool call whose sub-agent said it.
    pub parent_call: Option<String>,
}

impl CompleteMessage {
    /// Its text blocks, one after the other.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// One part of a complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentBlock {
    Text(String),
    Reasoning(String),
    /// `input` is a JSON object, or a JSON string with the fragments where the call was cut short.
    ToolUse {
        call: String,
        tool: String,
        input: JsonText,
    },
    /// A block of a kind that Tokenrail does not know, as given.
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

    /// The word for it in API and database.
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

    /// How a message ends that is still open when its turn ends: nobody has heard the end of it.
    pub fn of_open_message(turn: TurnOutcome) -> Self {
        match turn {
            TurnOutcome::Completed | TurnOutcome::Failed => Self::Failed,
            TurnOutcome::Cancelled => Self::Cancelled,
            TurnOutcome::Interrupted => Self::Interrupted,
        }
    }
}

/// The agent calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub call: String,
    pub tool: String,
    /// As given: nearly always a JSON object.
    pub input: JsonText,
    /// The call whose sub-agent made this one.
    pub parent_call: Option<String>,
}

/// What a tool call gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub call: String,
    /// As given: a JSON string, or an array of content blocks.
    pub content: JsonText,
    pub is_error: bool,
    pub parent_call: Option<String>,
}

/// What a model request has cost in tokens, as far as the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub stop_reason: Option<String>,
    /// As given: a JSON object.
    pub usage: JsonText,
}

/// Something that the agent says about itself: `init`, `api_retry`, `status` …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The agent's own word for it, or ours: `init`, `api_retry`, `status` …
    pub subtype: String,
    /// As given: a JSON object.
    pub data: JsonText,
}

impl Notice {
    /// The agent asks whether it may do something, and waits: `requestId`, `toolCallId`?, `toolName`, `input`, and
    /// `options`, each with `optionId`, `name` and `kind`.
    pub const PERMISSION_REQUEST: &'static str = "permission_request";
    /// The question is not open any more: `requestId`, `optionId`? and `by`.
    pub const PERMISSION_RESOLVED: &'static str = "permission_resolved";

    /// Whether it is a question, or tells that one was settled. No agent has words of its own for that: who asks
    /// must be heard.
    pub fn is_about_a_question(subtype: &str) -> bool {
        matches!(subtype, Self::PERMISSION_REQUEST | Self::PERMISSION_RESOLVED)
    }
}

/// Something went wrong, in the agent or around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentError {
    pub class: ErrorClass,
    /// Tokenrail's own code, for example `idle_timeout`; none where the error is the agent's.
    pub code: Option<String>,
    /// A sentence for the reader.
    pub text: String,
    pub retry_after_ms: Option<u64>,
    /// Whether the same prompt may succeed later.
    pub recoverable: bool,
}

/// What kind of error, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    RateLimit,
    Overloaded,
    Authentication,
    InvalidRequest,
    Network,
    Timeout,
    /// The agent's process could not start, or ended badly.
    Process,
    /// The agent printed what makes no sense.
    Protocol,
    Unknown,
}

impl ErrorClass {
    pub const ALL: [Self; 9] = [
        Self::RateLimit,
        Self::Overloaded,
        Self::Authentication,
        Self::InvalidRequest,
        Self::Network,
        Self::Timeout,
        Self::Process,
        Self::Protocol,
        Self::Unknown,
    ];

    /// The word for it in API and database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Authentication => "authentication",
            Self::InvalidRequest => "invalid_request",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Process => "process",
            Self::Protocol => "protocol",
            Self::Unknown => "unknown",
        }
    }

    /// The inverse of [`ErrorClass::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Whether the same request may succeed later without being changed.
    pub fn is_recoverable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Timeout)
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
    /// How many model requests it took, as the agent counts.
    pub num_turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// As given: a JSON object.
    pub usage: Option<JsonText>,
    /// How many complete messages the agent has said in this turn.
    pub message_count: u32,
    /// Why it failed, if it did.
    pub error: Option<AgentError>,
    /// Who began the turn, where it was not a user: for example a background task of the agent.
    pub origin: Option<String>,
}
