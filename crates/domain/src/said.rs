//! What a parser reads out of an agent's output, before it has a number.

use crate::{AgentError, ContentBlock, EventBody, JsonText, MessageOrdinal, MessageOutcome, Part};

/// What a parser reads out of an agent's output, before it has a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Something that happened: ready to be recorded. Never a [`EventBody::TurnResult`]: the agent's own
    /// result is a [`Said::Close`], for there may be more to record before the turn has ended.
    Event(EventBody),
    /// Nothing more comes for this message: its deltas are its content. `rest` holds the parts that were
    /// not said in deltas.
    End { message: MessageOrdinal, outcome: MessageOutcome, rest: Vec<(Part, ContentBlock)> },
    /// The agent program's own conversation id, as it has printed it.
    Session(String),
    /// The agent says that its turn has ended, and how.
    Close(Box<TurnClose>),
    /// The agent asks whether it may do something, and waits for one of these options. What a reader is told of it is
    /// an event of its own.
    Asked { question: String, options: Vec<String> },
    /// A question is not open any more; `option` is what was chosen, if anything was.
    Settled { question: String, option: Option<String> },
    /// After a [`Said::Close`], the agent has begun one more turn that nobody here asked for. Message
    /// ordinals start again at 0.
    NextTurn,
}

/// The agent's own account of the end of its turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnClose {
    /// Why it failed; none where it did not.
    pub error: Option<AgentError>,
    /// The agent says that somebody stopped it.
    pub interrupted: bool,
    /// The final text.
    pub text: String,
    pub num_turns: Option<u32>,
    pub cost_usd: Option<f64>,
    /// As given: a JSON object.
    pub usage: Option<JsonText>,
    /// Who began the turn, where it was not a user.
    pub origin: Option<String>,
}
