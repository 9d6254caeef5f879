//! The stream of a response: a fold of the events of one turn. Every event of the stream has a number, from 0 without a
//! gap, which is the same live, on replay and after a restart.
//!
//! A part of a message is an item with one content part: text is a message, and reasoning is a summary. A tool call is
//! an item too, with its result. Text and calls of sub-agents are left out: OpenAI has no place for them, so clients
//! would take them for the agent's own.
//!
//! The fold holds no text. It knows where the journal has the texts that later events repeat; these events have gaps,
//! which are filled while they are sent ([`Pieces`](super::pieces::Pieces)).

mod ending;
mod output;

use std::collections::BTreeMap;
use std::rc::Rc;

use tokenrail_domain::{
    Agent, CompleteMessage, ContentBlock, Event, EventBody, JsonText, MessageOrdinal, Part, ToolCall,
    ToolResult, Turn,
};

use crate::fold::{Fold, Frames, Vocabulary};
use crate::json::{TokenUsage, plain_text};
use crate::vocabularies::openai::dto::{ItemStatus, ResponseDto, StreamEvent};
use crate::vocabularies::openai::journal_text::TextPart;
use crate::vocabularies::openai::pieces::About;
use crate::vocabularies::openai::said_items::SaidItems;
use crate::vocabularies::turns::call_digest::CallDigest;
use crate::vocabularies::turns::call_state::CallState;
use crate::vocabularies::turns::said_words::{SaidWords, WordKind};
use output::Output;

/// The vocabulary of the streams of the Responses API.
#[derive(Debug)]
pub(crate) enum OpenAi {}

impl Vocabulary for OpenAi {
    type Frame<'f> = ResponseFrame<'f>;
}

/// An event of a stream, and what its gaps are about.
pub(crate) struct ResponseFrame<'f> {
    pub(crate) event: StreamEvent<'f>,
    pub(crate) about: About<'f>,
}

/// The fold of one turn.
pub(crate) struct ResponsesFold {
    response: ResponseDto,
    output: Output,
    has_begun: bool,
    /// The messages of the agent itself that are not complete. A part is known by the position of its item.
    open: BTreeMap<MessageOrdinal, SaidWords<usize>>,
    /// By the agent's own ids, which may be long.
    calls: BTreeMap<CallDigest, Call>,
    /// Why the newest message stopped, in the agent's words.
    stop_reason: Option<String>,
    usage: TokenUsage,
}

/// A tool call of the agent itself.
#[derive(Debug, Clone, Copy)]
struct Call {
    position: usize,
    message: Option<MessageOrdinal>,
    state: CallState,
}

impl ResponsesFold {
    /// Of the results of tools, the whole response contains at most `result_bytes` bytes.
    pub(crate) fn new(agent: &Agent, turn: &Turn, result_bytes: usize) -> Self {
        Self {
            response: ResponseDto::new(agent, turn),
            output: Output::new(agent, turn, result_bytes),
            has_begun: false,
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            stop_reason: None,
            usage: TokenUsage::default(),
        }
    }

    /// Sends the first event, which does not wait for the turn to start.
    pub(crate) fn open(&mut self, out: &mut impl Frames<OpenAi>) {
        self.output.lifecycle("response.created", &self.response, out);
    }

    /// The response as it is now, with a gap for its items.
    pub(crate) fn response(&self) -> &ResponseDto {
        &self.response
    }

    /// The items as they are now.
    pub(crate) fn items(&self) -> &Rc<SaidItems> {
        self.output.items()
    }

    /// Sends a delta.
    fn said(
        &mut self,
        (message, part): (MessageOrdinal, Part),
        kind: WordKind,
        text: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        self.say((message, part), (kind, TextPart::Words { message, part, kind }), text, out);
    }

    fn say(
        &mut self,
        (message, part): (MessageOrdinal, Part),
        (kind, what): (WordKind, TextPart),
        text: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        if text.is_empty() {
            return;
        }
        let words = self.open.entry(message).or_default();
        let position = if let Some(position) = words.open_id(part, kind) {
            *position
        } else {
            if let Some(open) = words.close() {
                self.output.end_words(open.id, open.kind, ItemStatus::Completed, out);
            }
            let position = self.output.begin_words(kind, message, out);
            words.open(part, kind, position);
            position
        };
        words.say(part, kind, text.len());
        self.output.more_words(position, (kind, what), text, out);
    }

    /// Ends the text or reasoning that is open in a message.
    fn end_words(&mut self, message: MessageOrdinal, status: ItemStatus, out: &mut impl Frames<OpenAi>) {
        if let Some(open) = self.open.get_mut(&message).and_then(SaidWords::close) {
            self.output.end_words(open.id, open.kind, status, out);
        }
    }

    fn input(
        &mut self,
        message: MessageOrdinal,
        (call, tool): (&str, Option<&str>),
        fragment: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        self.end_words(message, ItemStatus::Completed, out);
        let known = self.calls.get(&CallDigest::of(call)).copied();
        let position = match known {
            Some(known) if known.state == CallState::Streaming => known.position,
            Some(_) if tool.is_none() => return,
            _ => self.begin_call((call, tool.unwrap_or_default()), Some(message), None, out),
        };
        self.output.more_arguments(position, TextPart::Fragment, fragment, out);
    }

    fn begin_call(
        &mut self,
        (call, tool): (&str, &str),
        message: Option<MessageOrdinal>,
        block: Option<Part>,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        // An agent that uses the id of a call again gives no result to the earlier one.
        let key = CallDigest::of(call);
        if let Some(earlier) = self.calls.get(&key).filter(|call| call.state != CallState::Ended) {
            self.output.end_item(earlier.position, ItemStatus::Incomplete, out);
        }
        let position = self.output.begin_call(tool, message, block, out);
        self.calls.insert(key, Call { position, message, state: CallState::Streaming });
        position
    }

    /// Completes the arguments of a call, and begins the call if its arguments were not streamed. `place`: the block of
    /// a complete message that has the call.
    fn made(
        &mut self,
        (call, tool): (&str, &str),
        input: &JsonText,
        place: Option<(MessageOrdinal, Part)>,
        out: &mut impl Frames<OpenAi>,
    ) {
        let (message, block) = place.unzip();
        let known = self.calls.get(&CallDigest::of(call));
        let position = match known.filter(|known| !known.state.is_before(known.message, message)) {
            Some(known) if known.state != CallState::Streaming => return,
            Some(known) => known.position,
            None => {
                let position = self.begin_call((call, tool), message, block, out);
                self.output.more_arguments(position, TextPart::Input(block), input.as_str(), out);
                position
            }
        };
        self.output.end_arguments(position, Some(TextPart::Input(block)), out);
        self.set_state(call, CallState::Made);
    }

    fn set_state(&mut self, call: &str, state: CallState) {
        if let Some(known) = self.calls.get_mut(&CallDigest::of(call)) {
            known.state = state;
        }
    }

    fn result(&mut self, result: &ToolResult, out: &mut impl Frames<OpenAi>) {
        let known = self.calls.get(&CallDigest::of(&result.call)).copied();
        let Some(Call { position, state, .. }) = known else { return };
        if state == CallState::Ended {
            return;
        }
        if state == CallState::Streaming {
            self.output.end_arguments(position, None, out);
        }
        self.set_state(&result.call, CallState::Ended);
        self.output.end_call(position, plain_text(&result.content).len(), result.is_error, out);
    }

    /// Completes a message: sends what was not sent as deltas.
    fn complete(&mut self, complete: &CompleteMessage, out: &mut impl Frames<OpenAi>) {
        let message = complete.message;
        let status = ItemStatus::of(complete.outcome);
        self.end_words(message, status, out);
        let mut words = self.open.remove(&message).unwrap_or_default();
        for (index, block) in (0..).map(Part).zip(&complete.blocks) {
            match block {
                ContentBlock::Text(text) => {
                    self.rest(&mut words, (message, index), WordKind::Text, text, status, out);
                }
                ContentBlock::Reasoning(text) => {
                    self.rest(&mut words, (message, index), WordKind::Reasoning, text, status, out);
                }
                ContentBlock::ToolUse { call, tool, input } => {
                    // A call that was cut short has no result, so it ends with the turn.
                    if !input.as_str().starts_with('"') {
                        self.made((call, tool), input, Some((message, index)), out);
                    }
                }
                ContentBlock::Other(_) => {}
            }
        }
    }

    /// Sends a block of a complete message, unless it was sent as deltas.
    fn rest(
        &mut self,
        words: &mut SaidWords<usize>,
        (message, index): (MessageOrdinal, Part),
        kind: WordKind,
        text: &str,
        status: ItemStatus,
        out: &mut impl Frames<OpenAi>,
    ) {
        if words.was_said(kind, text.len()) || text.is_empty() {
            return;
        }
        self.say((message, index), (kind, TextPart::Block(index)), text, out);
        self.end_words(message, status, out);
        self.open.remove(&message);
    }

    /// The agent discards a message and sends it again. OpenAI's streams cannot take anything back, so the items end,
    /// and the whole response omits them. What the agent has done stays.
    fn abandoned(&mut self, message: MessageOrdinal, out: &mut impl Frames<OpenAi>) {
        self.end_words(message, ItemStatus::Incomplete, out);
        self.open.remove(&message);
        let undone = |call: &Call| call.message == Some(message) && call.state != CallState::Ended;
        let mut calls: Vec<usize> =
            self.calls.values().filter(|call| undone(call)).map(|call| call.position).collect();
        calls.sort_unstable();
        self.calls.retain(|_, call| !undone(call));
        for position in &calls {
            self.output.end_item(*position, ItemStatus::Incomplete, out);
        }
        self.output.discard(message, &calls);
    }
}

impl Fold for ResponsesFold {
    type Vocabulary = OpenAi;

    fn event<T: Frames<OpenAi>>(&mut self, event: &Event, out: &mut T) {
        self.output.apply(event.sequence);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.response.status = "in_progress";
            self.output.lifecycle("response.in_progress", &self.response, out);
        }
        match &event.body {
            EventBody::TextDelta { message, part, text } => {
                self.said((*message, *part), WordKind::Text, text, out);
            }
            EventBody::ReasoningDelta { message, part, text } => {
                self.said((*message, *part), WordKind::Reasoning, text, out);
            }
            EventBody::ToolInputDelta { message, part: _, call, tool, fragment } => {
                self.input(*message, (call, tool.as_deref()), fragment, out);
            }
            EventBody::Message(message) if message.parent_call.is_none() => self.complete(message, out),
            EventBody::ToolCall(made) if made.parent_call.is_none() => {
                let ToolCall { call, tool, input, .. } = &**made;
                self.made((call, tool), input, None, out);
            }
            EventBody::ToolResult(result) if result.parent_call.is_none() => self.result(result, out),
            EventBody::Abandoned { message } => self.abandoned(*message, out),
            EventBody::Usage(usage) => {
                self.usage.add(&usage.usage);
                if let Some(reason) = &usage.stop_reason {
                    self.stop_reason = Some(reason.clone());
                }
            }
            EventBody::TurnResult(result) => self.end(event, result, out),
            // Clients show their own prompts. They answer permission requests with the native API, and a request is
            // over when its turn goes on. An error that does not end the turn would end the stream.
            EventBody::UserMessage { .. }
            | EventBody::Message(_)
            | EventBody::ToolCall(_)
            | EventBody::ToolResult(_)
            | EventBody::Notice(_)
            | EventBody::Error(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
