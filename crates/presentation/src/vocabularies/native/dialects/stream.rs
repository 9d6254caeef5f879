//! The dialect `stream`: the text of the response as it arrives, tool calls with their results, and the end of the
//! turn.

use tokenrail_application::RenderingKey;
use tokenrail_domain::{
    AgentError, AgentId, Event, EventBody, MessageOrdinal, ToolCall, ToolResult, TurnOutcome, TurnResult,
    UnifiedPatch, message_id,
};

use super::spoken::{Spoken, Step};
use crate::fold::{Fold, Frames};
use crate::json::{AgentErrorDto, IdText, Json};
use crate::vocabularies::native::dto::frames::ResultDto;
use crate::vocabularies::native::dto::stream_frames::{
    StopDto, StreamAbandoned, StreamCancelled, StreamFault, StreamResult, StreamToolResult, StreamToolUse,
    ToolResultDto, ToolUseDto,
};
use crate::vocabularies::native::native_frame::{Native, NativeFrame, SpokenText, TextFrame, tell};

/// The fold of the dialect `stream`: the state of the current turn.
#[derive(Debug)]
pub(crate) struct StreamFold {
    agent: AgentId,
    spoken: Spoken,
    /// The latest stop reason of the model.
    stop_reason: Option<String>,
    /// The last error that was sent.
    told: Option<AgentError>,
}

impl StreamFold {
    pub(crate) fn new(agent: AgentId) -> Self {
        Self { agent, spoken: Spoken::default(), stop_reason: None, told: None }
    }

    fn text<T: Frames<Native>>(&self, event: &Event, message: MessageOrdinal, text: &str, out: &mut T) {
        if !text.is_empty() {
            let (sequence, at) = (event.sequence.0, event.at);
            let (agent, turn, frame) = (self.agent, event.turn, TextFrame::Stream);
            out.frame(NativeFrame::Text(SpokenText { agent, turn, message, sequence, at, text, frame }));
        }
    }

    fn tool_use<T: Frames<Native>>(&self, event: &Event, made: &ToolCall, out: &mut T) {
        let ToolCall { call, tool, input, parent_call } = made;
        let agent_id = self.agent.into();
        let payload = StreamToolUse {
            agent_id,
            sequence: event.sequence.0,
            tool: ToolUseDto { id: call, name: tool, input: Json(input) },
            parent_tool_call_id: parent_call.as_deref(),
        };
        tell(out, event.at, agent_id, "agent:tool_use", payload);
    }

    fn tool_result<T: Frames<Native>>(&self, event: &Event, given: &ToolResult, out: &mut T) {
        let ToolResult { call, content, is_error, parent_call, patch } = given;
        let agent_id = self.agent.into();
        let payload = StreamToolResult {
            agent_id,
            sequence: event.sequence.0,
            result: ToolResultDto {
                tool_use_id: call,
                content: Json(content),
                is_error: *is_error,
                patch: patch.as_ref().map(UnifiedPatch::as_str),
            },
            parent_tool_call_id: parent_call.as_deref(),
        };
        tell(out, event.at, agent_id, "agent:tool_result", payload);
    }

    fn error<T: Frames<Native>>(&self, event: &Event, error: &AgentError, out: &mut T) {
        let AgentErrorDto { class, code, message, retry_after, recoverable } = error.into();
        let agent_id = self.agent.into();
        let payload = StreamFault {
            agent_id,
            sequence: event.sequence.0,
            message: message.unwrap_or_default(),
            kind: class,
            code,
            retry_after,
            recoverable,
        };
        tell(out, event.at, agent_id, "agent:error", payload);
    }

    fn result<T: Frames<Native>>(&self, event: &Event, result: &TurnResult, out: &mut T) {
        let (agent_id, sequence) = (self.agent.into(), event.sequence.0);
        if result.outcome == TurnOutcome::Cancelled {
            tell(out, event.at, agent_id, "agent:cancelled", StreamCancelled { agent_id, sequence });
            return;
        }
        // An agent that was cut off could not report the error itself.
        if let Some(error) = result.error.as_ref().filter(|error| self.told.as_ref() != Some(error)) {
            self.error(event, error, out);
        }
        let stop_reason = self.stop_reason.as_deref();
        let result = StopDto { stop_reason, result: ResultDto::new(event.turn, result) };
        tell(out, event.at, agent_id, "agent:complete", StreamResult { agent_id, sequence, result });
    }
}

impl Fold for StreamFold {
    type Vocabulary = Native;

    fn shared(&self, form: u8) -> Option<RenderingKey> {
        Some(RenderingKey::of::<Self>([0, form]))
    }

    fn event<T: Frames<Native>>(&mut self, event: &Event, out: &mut T) {
        match &event.body {
            EventBody::TextDelta { message, text, .. } => {
                if self.spoken.delta(event, *message, text.len()) != Step::Orphan {
                    self.text(event, *message, text, out);
                }
            }
            // A sub-agent's response arrives as the result of its tool call. Among the agent's own text, clients would
            // take it for the agent's.
            EventBody::Message(complete) if complete.parent_call.is_none() => {
                let text = complete.text();
                let (_, rest) = self.spoken.end(complete.message, &text);
                self.text(event, complete.message, rest, out);
            }
            EventBody::Abandoned { message } => {
                if self.spoken.abandon(*message) {
                    let id = IdText(message_id(self.agent, event.turn, *message));
                    let (agent_id, sequence) = (self.agent.into(), event.sequence.0);
                    let payload = StreamAbandoned { agent_id, sequence, message_id: id };
                    tell(out, event.at, agent_id, "agent:abandoned", payload);
                }
            }
            EventBody::ToolCall(call) => self.tool_use(event, call, out),
            EventBody::ToolResult(result) => self.tool_result(event, result, out),
            EventBody::Usage(usage) => {
                if usage.stop_reason.is_some() {
                    self.stop_reason.clone_from(&usage.stop_reason);
                }
            }
            EventBody::Error(error) => {
                self.error(event, error, out);
                self.told = Some(AgentError::clone(error));
            }
            EventBody::TurnResult(result) => {
                self.result(event, result, out);
                *self = Self::new(self.agent);
            }
            EventBody::UserMessage { .. }
            | EventBody::ReasoningDelta { .. }
            | EventBody::ToolInputDelta { .. }
            | EventBody::Message(_)
            | EventBody::Notice(_) => {}
        }
    }
}
