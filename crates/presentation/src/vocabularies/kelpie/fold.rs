//! The Kelpie vocabulary: named events. A fold of the events of one turn.

use std::collections::BTreeMap;

use serde::Serialize;
use tokenrail_domain::{
    AgentId, CompleteMessage, Event, EventBody, MessageOrdinal, ToolCall, event_id, message_id,
};

use crate::blocks::BlockWriter;
use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::{Json, plain_text};
use crate::vocabularies::kelpie::dto::{
    KelpieError, MessageChunk, MessageComplete, ToolCallComplete, ToolCallStart,
};
use crate::vocabularies::turns::turn_events::failure;

/// The Kelpie vocabulary.
#[derive(Debug)]
pub(crate) enum Kelpie {}

impl Vocabulary for Kelpie {
    type Frame<'f> = KelpieFrame<'f>;
}

/// A named frame.
pub(crate) struct KelpieFrame<'f> {
    /// The cursor from which a client resumes. `None` for the last frame of a turn.
    id: Option<u64>,
    word: Word<'f>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Word<'f> {
    MessageChunk(MessageChunk<'f>),
    MessageComplete(MessageComplete<'f>),
    ToolCallStart(ToolCallStart<'f>),
    ToolCallComplete(ToolCallComplete<'f>),
    Error(KelpieError<'f>),
}

impl Word<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::MessageChunk(_) => "message_chunk",
            Self::MessageComplete(_) => "message_complete",
            Self::ToolCallStart(_) => "tool_call_start",
            Self::ToolCallComplete(_) => "tool_call_complete",
            Self::Error(_) => "error",
        }
    }
}

/// The fold of one turn's events. Each event becomes at most one frame. The fold omits the output of sub-agents and the
/// model's reasoning, because this vocabulary has no frames for them.
pub(crate) struct KelpieFold {
    agent: AgentId,
    /// For each open message, the number of bytes of its text that were sent.
    said: BTreeMap<MessageOrdinal, usize>,
    last: Option<MessageOrdinal>,
}

impl KelpieFold {
    pub(crate) fn new(agent: AgentId) -> Self {
        Self { agent, said: BTreeMap::new(), last: None }
    }

    /// Writes the end of a turn that completed or was cancelled.
    fn end(&self, event: &Event, out: &mut impl Frames<Kelpie>) {
        let id = match self.last {
            Some(message) => message_id(self.agent, event.turn, message),
            None => event_id(self.agent, event),
        };
        tell(out, None, Word::MessageComplete(MessageComplete { message_id: &format!("message-{id}") }));
    }

    fn complete(&mut self, event: &Event, complete: &CompleteMessage, out: &mut impl Frames<Kelpie>) {
        self.last = Some(complete.message);
        let said = self.said.remove(&complete.message).unwrap_or_default();
        let text = complete.text();
        // The text that was not sent as deltas.
        chunk(event, text.get(said..).unwrap_or_default(), out);
    }
}

impl Fold for KelpieFold {
    type Vocabulary = Kelpie;

    fn event<T: Frames<Kelpie>>(&mut self, event: &Event, out: &mut T) {
        let id = Some(event.sequence.0);
        match &event.body {
            EventBody::TextDelta { message, text, .. } => {
                *self.said.entry(*message).or_default() += text.len();
                chunk(event, text, out);
            }
            EventBody::Message(complete) if complete.parent_call.is_none() => {
                self.complete(event, complete, out);
            }
            EventBody::ToolCall(call) if call.parent_call.is_none() => {
                let ToolCall { call, tool, input, parent_call: _ } = &**call;
                let start = ToolCallStart { tool_name: tool, tool_call_id: call, input: Json(input) };
                tell(out, id, Word::ToolCallStart(start));
            }
            EventBody::ToolResult(result) if result.parent_call.is_none() => {
                let text = plain_text(&result.content);
                let complete = ToolCallComplete { tool_call_id: &result.call, result: &text };
                tell(out, id, Word::ToolCallComplete(complete));
            }
            EventBody::Abandoned { message } => {
                self.said.remove(message);
            }
            // The last frame has no id. A client that resumes without having received it therefore receives it again.
            EventBody::TurnResult(result) => match failure(result) {
                Some((_, message, _)) => tell(out, None, Word::Error(KelpieError { message })),
                None => self.end(event, out),
            },
            _ => {}
        }
    }
}

impl Frames<Kelpie> for BlockWriter {
    fn frame(&mut self, frame: KelpieFrame<'_>) {
        let KelpieFrame { id, word } = frame;
        self.named(word.name(), id, &word);
    }
}

fn tell(out: &mut impl Frames<Kelpie>, id: Option<u64>, word: Word<'_>) {
    out.frame(KelpieFrame { id, word });
}

fn chunk(event: &Event, content: &str, out: &mut impl Frames<Kelpie>) {
    if !content.is_empty() {
        let chunk = MessageChunk { kind: "assistant_message", content };
        tell(out, Some(event.sequence.0), Word::MessageChunk(chunk));
    }
}
