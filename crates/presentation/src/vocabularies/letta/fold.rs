//! The Letta vocabulary: frames without a name, which differ in `message_type`. A fold of the events of one turn.

mod approval;
mod ending;
mod message;

use std::collections::BTreeMap;

use tokenrail_domain::{
    AgentId, CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, Part, ToolCall, ToolResult,
    TurnNumber, TurnResult, event_id, message_id,
};

use self::message::{Kind, OpenMessage};
use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::{IsoTime, plain_text};
use crate::vocabularies::letta::dto::{
    LettaMessage, LettaSaid, LettaToolCall, LettaToolCalls, StopReasonDto, ToolReturn, UsageStatistics,
};
use crate::vocabularies::turns::permission_notices::Approvals;
use crate::vocabularies::turns::turn_events::failure;

pub(crate) use self::ending::{Ending, REASON_EVENTS, stop_reason};
use super::run_id::RunId;

/// The Letta vocabulary.
#[derive(Debug)]
pub(crate) enum Letta {}

impl Vocabulary for Letta {
    type Frame<'f> = LettaFrame;
}

/// A frame of a run.
#[derive(Debug, Clone)]
pub(crate) enum LettaFrame {
    Message(Box<LettaMessage>),
    Stop(StopReasonDto),
    Usage(UsageStatistics),
    /// The turn has failed.
    Error {
        kind: String,
        message: String,
        detail: Option<String>,
    },
}

/// The fold of one turn's events. Of the frames of an event, at most one has the event's number: the last one. A client
/// that resumes after that number therefore has all of the event.
///
/// The fold omits the output of sub-agents. Letta has no place for it, so clients would take it for the agent's own.
pub(crate) struct LettaFold {
    agent: AgentId,
    run: String,
    /// Whether text is sent in pieces as it arrives. Otherwise, each item is sent whole when it is finished.
    tokens: bool,
    open: BTreeMap<MessageOrdinal, OpenMessage>,
    /// Tool calls that an input delta or a message has announced, and whose own event has not arrived yet.
    calls: BTreeMap<String, Call>,
    approvals: Approvals,
    /// For each permission request, the id of its message. The key is the request's id.
    asked_in: BTreeMap<String, String>,
    steps: u32,
    ending: Ending,
    usage: UsageStatistics,
    /// The frames of one event. Kept to reuse the allocation.
    frames: Vec<LettaFrame>,
}

/// An announced tool call.
#[derive(Debug, Clone, Copy)]
struct Call {
    message: MessageOrdinal,
    part: Part,
    /// Whether its input was sent in pieces.
    sent: bool,
}

impl LettaFold {
    pub(crate) fn new(agent: AgentId, turn: TurnNumber, tokens: bool) -> Self {
        let run = RunId { agent, turn, tokens }.to_string();
        let usage = UsageStatistics::nothing(run.clone());
        Self {
            agent,
            run,
            tokens,
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            approvals: Approvals::default(),
            asked_in: BTreeMap::new(),
            steps: 0,
            ending: Ending::default(),
            usage,
            frames: Vec::new(),
        }
    }

    /// The id of the run.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    fn take_in(&mut self, event: &Event, out: &mut Vec<LettaFrame>) {
        let stop_reason = self.ending.event(event);
        match &event.body {
            EventBody::TextDelta { message, part, text } => {
                self.delta(event, (*message, *part), Kind::Text, text, out);
            }
            EventBody::ReasoningDelta { message, part, text } => {
                self.delta(event, (*message, *part), Kind::Reasoning, text, out);
            }
            EventBody::ToolInputDelta { message, part, call, tool, fragment } => {
                let call = LettaToolCall {
                    name: tool.clone(),
                    arguments: Some(fragment.clone()),
                    tool_call_id: call.clone(),
                };
                self.input(event, (*message, *part), call, out);
            }
            EventBody::Message(complete) if complete.parent_call.is_none() => {
                self.complete(event, complete, out);
            }
            EventBody::ToolCall(call) if call.parent_call.is_none() => self.call(event, call, out),
            EventBody::ToolResult(result) if result.parent_call.is_none() => self.result(event, result, out),
            EventBody::Abandoned { message } => {
                self.open.remove(message);
                self.calls.retain(|_, call| call.message != *message);
            }
            EventBody::Notice(notice) => self.notice(event, notice, out),
            EventBody::Usage(usage) => self.usage.add(&usage.usage),
            EventBody::TurnResult(result) => {
                out.extend(stop_reason.map(|reason| LettaFrame::Stop(StopReasonDto::new(reason))));
                self.end(result, out);
            }
            EventBody::UserMessage { .. }
            | EventBody::Message(_)
            | EventBody::ToolCall(_)
            | EventBody::ToolResult(_)
            // An error that does not end the turn is omitted, because Letta's clients end the stream at every error.
            | EventBody::Error(_) => {}
        }
        if let Some(LettaFrame::Message(last)) = out.last_mut() {
            last.seq_id = Some(event.sequence.0);
        }
    }

    /// The prompt, for the history. A stream does not repeat it to the client that sent it.
    pub(crate) fn prompt(&self, event: &Event) -> Option<LettaMessage> {
        let EventBody::UserMessage { content, .. } = &event.body else { return None };
        let content = content.clone();
        let said = LettaSaid::User { content };
        Some(LettaMessage { seq_id: Some(event.sequence.0), ..self.of_event(event, said) })
    }

    fn delta(
        &mut self,
        event: &Event,
        (message, part): (MessageOrdinal, Part),
        kind: Kind,
        text: &str,
        out: &mut Vec<LettaFrame>,
    ) {
        self.finish_before(event, message, part, out);
        let tokens = self.tokens;
        self.open.entry(message).or_default().say(part, kind, text, tokens);
        if tokens && !text.is_empty() {
            out.push(self.of_part(event, message, part, kind.said(text.to_owned())));
        }
    }

    fn input(
        &mut self,
        event: &Event,
        (message, part): (MessageOrdinal, Part),
        call: LettaToolCall,
        out: &mut Vec<LettaFrame>,
    ) {
        self.finish_before(event, message, part, out);
        let tokens = self.tokens;
        self.open.entry(message).or_default().say(part, Kind::Input, "", tokens);
        self.calls.insert(call.tool_call_id.clone(), Call { message, part, sent: tokens });
        if tokens {
            let tool_calls = LettaToolCalls::Piece(call.clone());
            let said = LettaSaid::ToolCall { tool_call: call, tool_calls };
            out.push(self.of_part(event, message, part, said));
        }
    }

    /// Finishes the parts before `part`, and sends what was kept of them.
    fn finish_before(
        &mut self,
        event: &Event,
        message: MessageOrdinal,
        part: Part,
        out: &mut Vec<LettaFrame>,
    ) {
        let open = self.open.get_mut(&message);
        for (part, said) in open.map(|open| open.finish_before(part)).unwrap_or_default() {
            out.push(self.of_part(event, message, part, said));
        }
    }

    fn complete(&mut self, event: &Event, complete: &CompleteMessage, out: &mut Vec<LettaFrame>) {
        self.steps += 1;
        let message = complete.message;
        let mut open = self.open.remove(&message).unwrap_or_default();
        for (index, block) in (0..).map(Part).zip(&complete.blocks) {
            if let ContentBlock::ToolUse { call, .. } = block {
                // If the message had deltas, they have announced the call.
                if complete.first_sequence.is_none() {
                    self.calls.insert(call.clone(), Call { message, part: index, sent: false });
                }
                open.take(Kind::Input, 0);
                continue;
            }
            if let Some((part, said)) = open.rest_of(index, block) {
                out.push(self.of_part(event, message, part, said));
            }
        }
    }

    fn call(&mut self, event: &Event, call: &ToolCall, out: &mut Vec<LettaFrame>) {
        let known = self.calls.remove(&call.call);
        if known.is_some_and(|known| known.sent) {
            return;
        }
        let whole = LettaToolCall {
            name: Some(call.tool.clone()),
            arguments: Some(call.input.as_str().to_owned()),
            tool_call_id: call.call.clone(),
        };
        let tool_calls = LettaToolCalls::Whole([whole.clone()]);
        let said = LettaSaid::ToolCall { tool_call: whole, tool_calls };
        match known {
            Some(Call { message, part, .. }) => {
                self.finish_before(event, message, part, out);
                out.push(self.of_part(event, message, part, said));
            }
            None => out.push(LettaFrame::Message(Box::new(self.of_event(event, said)))),
        }
    }

    fn result(&self, event: &Event, result: &ToolResult, out: &mut Vec<LettaFrame>) {
        let status = if result.is_error { "error" } else { "success" };
        let tool_return = ToolReturn::new(result.call.clone(), status, plain_text(&result.content));
        let said = LettaSaid::ToolReturn(tool_return);
        out.push(LettaFrame::Message(Box::new(self.of_event(event, said))));
    }

    fn end(&self, result: &TurnResult, out: &mut Vec<LettaFrame>) {
        if let Some((kind, message, detail)) = failure(result) {
            out.push(LettaFrame::Error {
                kind: kind.to_owned(),
                message: message.to_owned(),
                detail: detail.map(str::to_owned),
            });
            return;
        }
        out.push(LettaFrame::Usage(self.usage_of(result)));
    }

    /// The usage of the turn so far, as its messages report it.
    pub(crate) fn usage_so_far(&self) -> UsageStatistics {
        UsageStatistics { step_count: self.steps, ..self.usage.clone() }
    }

    /// The usage of the turn, as its result reports it. If the result reports none, the sum of what its messages
    /// report.
    pub(crate) fn usage_of(&self, result: &TurnResult) -> UsageStatistics {
        let mut usage = self.usage.clone();
        if let Some(whole) = &result.usage {
            usage = UsageStatistics::nothing(self.run.clone());
            usage.add(whole);
        }
        UsageStatistics { step_count: result.num_turns.unwrap_or(self.steps), ..usage }
    }

    fn of_part(&self, event: &Event, message: MessageOrdinal, part: Part, said: LettaSaid) -> LettaFrame {
        let id = message_id(self.agent, event.turn, message);
        LettaFrame::Message(Box::new(LettaMessage {
            id: format!("message-{id}"),
            date: IsoTime(event.at),
            said,
            otid: Some(format!("{id}-{}", part.0)),
            run_id: self.run.clone(),
            step_id: Some(format!("step-{id}")),
            seq_id: None,
        }))
    }

    fn of_event(&self, event: &Event, said: LettaSaid) -> LettaMessage {
        let id = event_id(self.agent, event);
        LettaMessage {
            id: format!("message-{id}"),
            date: IsoTime(event.at),
            said,
            otid: Some(id.to_string()),
            run_id: self.run.clone(),
            step_id: None,
            seq_id: None,
        }
    }
}

impl Fold for LettaFold {
    type Vocabulary = Letta;

    fn event<T: Frames<Letta>>(&mut self, event: &Event, out: &mut T) {
        let mut frames = std::mem::take(&mut self.frames);
        self.take_in(event, &mut frames);
        frames.drain(..).for_each(|frame| out.frame(frame));
        self.frames = frames;
    }
}

impl Frames<Letta> for Vec<LettaFrame> {
    fn frame(&mut self, frame: LettaFrame) {
        self.push(frame);
    }
}
