//! The Kelpie vocabulary: named events. A fold of the events of one turn.

use std::collections::BTreeMap;

use tokenrail_domain::{
    AgentId, CompleteMessage, Event, EventBody, MessageOrdinal, ToolCall, event_id, message_id,
};

use super::blocks::BlockWriter;
use super::letta::failure;
use crate::dto::kelpie::{KelpieError, MessageChunk, MessageComplete, ToolCallComplete, ToolCallStart};
use crate::dto::{Json, plain_text};

/// The events of one turn as frames; an event has at most one. What sub-agents say among themselves, and the model's
/// reasoning, are left out: this vocabulary has no words for them.
pub(crate) struct KelpieFold {
    agent: AgentId,
    /// How many bytes of text each open message has said.
    said: BTreeMap<MessageOrdinal, usize>,
    last: Option<MessageOrdinal>,
}

impl KelpieFold {
    pub(crate) fn new(agent: AgentId) -> Self {
        Self { agent, said: BTreeMap::new(), last: None }
    }

    /// Takes in the next event of the turn, and appends its frame.
    pub(crate) fn event(&mut self, event: &Event, out: &mut BlockWriter) {
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
                out.named("tool_call_start", id, &start);
            }
            EventBody::ToolResult(result) if result.parent_call.is_none() => {
                let text = plain_text(&result.content);
                let complete = ToolCallComplete { tool_call_id: &result.call, result: &text };
                out.named("tool_call_complete", id, &complete);
            }
            EventBody::Abandoned { message } => {
                self.said.remove(message);
            }
            // The end has no number: who comes again without having seen it gets it again.
            EventBody::TurnResult(result) => match failure(result) {
                Some((_, message, _)) => out.named("error", None, &KelpieError { message }),
                None => self.end(event, out),
            },
            _ => {}
        }
    }

    /// Says that the turn has ended well, or was cancelled.
    fn end(&self, event: &Event, out: &mut BlockWriter) {
        let id = match self.last {
            Some(message) => message_id(self.agent, event.turn, message),
            None => event_id(self.agent, event),
        };
        out.named("message_complete", None, &MessageComplete { message_id: &format!("message-{id}") });
    }

    fn complete(&mut self, event: &Event, complete: &CompleteMessage, out: &mut BlockWriter) {
        self.last = Some(complete.message);
        let said = self.said.remove(&complete.message).unwrap_or_default();
        let text = complete.text();
        // What was not said in deltas.
        chunk(event, text.get(said..).unwrap_or_default(), out);
    }
}

fn chunk(event: &Event, content: &str, out: &mut BlockWriter) {
    if !content.is_empty() {
        let chunk = MessageChunk { kind: "assistant_message", content };
        out.named("message_chunk", Some(event.sequence.0), &chunk);
    }
}
