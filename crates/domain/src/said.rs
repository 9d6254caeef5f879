//! What a parser reads from an agent's output, before it has a sequence number.

use crate::{
    AgentError, ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part, PermissionReply,
    PermissionRequest,
};

/// What a parser reads from an agent's output, before it has a sequence number.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// An event that is ready to be recorded. Never an [`EventBody::TurnResult`]: the agent's own result is a
    /// [`Said::Close`], because there may be more to record before the turn has ended.
    Event(EventBody),
    /// The end of a message: its deltas are its content. `rest` holds the parts that had no deltas.
    End { message: MessageOrdinal, outcome: MessageOutcome, rest: Vec<(Part, ContentBlock)> },
    /// The agent program's own conversation id, as printed.
    Session(String),
    /// The agent reports that its turn has ended, and how.
    Close(Box<TurnClose>),
    /// The agent sent a permission request and waits for the reply. A separate event tells clients about it.
    Asked(Box<PermissionRequest>),
    /// A permission request is no longer open.
    Settled { request_id: String, reply: PermissionReply },
    /// After a [`Said::Close`], the agent started another turn without a prompt from Tokenrail. Message ordinals start
    /// again at 0.
    OwnTurn,
}

/// The agent's own report of the end of its turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnClose {
    /// Why the turn failed. `None` if it did not fail.
    pub error: Option<AgentError>,
    /// The agent reports that it was interrupted.
    pub interrupted: bool,
    /// The final text.
    pub text: String,
    pub num_turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// Unchanged from the agent: a JSON object.
    pub usage: Option<JsonText>,
    /// What started the turn, if it was not a user.
    pub origin: Option<String>,
}
