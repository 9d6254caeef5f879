//! One answer of a model while it arrives. For every API, it is one message.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tokenrail_domain::{AgentError, ContentBlock, ErrorClass, EventBody, JsonText, Said, TurnClose, Usage};

use crate::conversation::Conversation;
use crate::errors::agent_error;
use crate::fields::{self, Raw};
use crate::line::notice;
use crate::open_message::{OpenMessage, PartKind};

/// The position of a part in an answer, in the API's own numbers. Parts are shown in the order in which they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) piece: PartKind,
    pub(super) outer: u32,
    pub(super) inner: u32,
}

/// The answer, and the turn that consists of it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    conversation: Conversation,
    /// The model of the answer was reported.
    introduced: bool,
    message: Option<OpenMessage>,
    places: BTreeMap<Place, u32>,
    /// The fields of the token usage, with their latest values.
    usage: BTreeMap<String, Box<RawValue>>,
    /// Why the answer has ended, as far as the API has reported it.
    stop_reason: Option<String>,
    /// The API has sent the whole answer, though its stream may continue.
    whole: bool,
}

impl Place {
    pub(super) fn new(piece: PartKind, outer: Raw<'_>, inner: Raw<'_>) -> Self {
        let number = |raw| fields::number(raw).unwrap_or(0);
        Self { piece, outer: number(outer), inner: number(inner) }
    }
}

impl Answer {
    pub(super) fn is_over(&self) -> bool {
        self.conversation.is_closed()
    }

    /// Reports once which model answers, and the API's own id of the answer.
    pub(super) fn introduce(&mut self, id: Raw<'_>, model: Raw<'_>, said: &mut Vec<Said>) {
        if self.introduced || (id.is_none() && model.is_none()) {
            return;
        }
        self.introduced = true;
        let named = [("id", id), ("model", model)].into_iter().filter_map(|(name, raw)| Some((name, raw?)));
        let data: Vec<String> = named.map(|(name, raw)| format!("\"{name}\":{}", raw.get())).collect();
        said.push(notice("init", JsonText::new_unchecked(format!("{{{}}}", data.join(",")))));
    }

    /// A part begins.
    pub(super) fn start(&mut self, place: Place, block: ContentBlock) {
        let part = self.part(place);
        self.message().start(part, block);
    }

    /// A piece of a part arrives. `raw` is a JSON string.
    pub(super) fn say(&mut self, place: Place, raw: Raw<'_>, said: &mut Vec<Said>) {
        // An empty piece begins no part: many streams begin with an empty piece of a part that never arrives.
        let Some(raw) = raw.filter(|raw| place.piece == PartKind::ToolInput || raw.get() != "\"\"") else {
            return;
        };
        let part = self.part(place);
        let message = self.message.get_or_insert_with(|| OpenMessage::new(None));
        message.say(part, place.piece, raw.get(), &mut self.conversation.emitter(said));
    }

    /// A part ends.
    pub(super) fn stop(&mut self, place: Place, said: &mut Vec<Said>) {
        if let (Some(part), Some(message)) = (self.places.get(&place), &mut self.message) {
            message.stop(*part, &mut self.conversation.emitter(said));
        }
    }

    /// A part arrives whole. What its pieces lack is emitted.
    pub(super) fn repeat(&mut self, place: Place, block: ContentBlock, said: &mut Vec<Said>) {
        let part = self.part(place);
        let message = self.message.get_or_insert_with(|| OpenMessage::new(None));
        message.repeat_part(part, block, &mut self.conversation.emitter(said));
    }

    /// The input of a tool call arrives whole.
    pub(super) fn repeat_input(&mut self, place: Place, input: Raw<'_>, said: &mut Vec<Said>) {
        let part = self.part(place);
        if self.message().has_said_nothing(part) {
            self.say(place, input, said);
        }
    }

    /// Emits a complete tool call, once.
    pub(super) fn complete_call(&mut self, place: Place, said: &mut Vec<Said>) {
        if let (Some(part), Some(message)) = (self.places.get(&place), &mut self.message) {
            let call = message.complete_call(*part, &mut self.conversation.emitter(said));
            said.extend(call.map(|call| Said::Event(EventBody::ToolCall(Box::new(call)))));
        }
    }

    /// Updates the token usage. Fields that were reported before may be missing.
    pub(super) fn cost(&mut self, usage: Raw<'_>) {
        let usage: BTreeMap<String, &RawValue> = fields::read(usage);
        self.usage.extend(usage.into_iter().map(|(field, value)| (field, value.to_owned())));
    }

    /// Sets the reason why the answer ends. Each reason has one word here for all APIs.
    pub(super) fn stopped(&mut self, reason: Option<Cow<'_, str>>) {
        let Some(reason) = reason else { return };
        let word = match &*reason {
            "stop" => "end_turn",
            "length" | "max_output_tokens" => "max_tokens",
            "tool_calls" | "function_call" => "tool_use",
            "content_filter" => "refusal",
            other => other,
        };
        self.stop_reason = Some(word.to_owned());
    }

    /// The API has sent the whole answer, and may only add the token usage.
    pub(super) fn is_whole(&mut self, said: &mut Vec<Said>) {
        self.whole = true;
        self.complete_calls(said);
    }

    /// Whether no part has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The number of tool calls so far.
    pub(super) fn calls(&self) -> u32 {
        self.places.keys().filter(|place| place.piece == PartKind::ToolInput).count() as u32
    }

    fn complete_calls(&mut self, said: &mut Vec<Said>) {
        let calls = self.places.keys().copied().filter(|place| place.piece == PartKind::ToolInput);
        for place in calls.collect::<Vec<_>>() {
            self.complete_call(place, said);
        }
    }

    /// The API reports that its stream has ended normally.
    pub(super) fn stream_done(&mut self, said: &mut Vec<Said>) {
        if self.message.is_some() || self.whole {
            self.complete(said);
        }
    }

    /// The connection has ended. If the answer has no end, a part of it is missing.
    pub(super) fn stream_ended(&mut self, said: &mut Vec<Said>) {
        if self.whole {
            return self.complete(said);
        }
        let text = "the connection to the model API ended before the response was complete".to_owned();
        self.fail(agent_error(ErrorClass::Network, Some("upstream_dropped"), text), said);
    }

    /// Ends the answer and the turn.
    pub(super) fn complete(&mut self, said: &mut Vec<Said>) {
        self.complete_calls(said);
        self.conversation.end(&mut self.message, said);
        let usage = self.usage();
        if usage.is_some() || self.stop_reason.is_some() {
            let (stop_reason, usage) = (self.stop_reason.take(), usage.clone());
            let usage = usage.unwrap_or_else(|| JsonText::new_unchecked("{}"));
            said.push(Said::Event(EventBody::Usage(Box::new(Usage { stop_reason, usage }))));
        }
        self.conversation.close(TurnClose { usage, ..TurnClose::default() }, said);
    }

    /// Fails the answer and the turn. The message keeps its deltas and stays open.
    pub(super) fn fail(&mut self, error: AgentError, said: &mut Vec<Said>) {
        self.conversation.break_off(&mut self.message, said);
        let close = TurnClose { error: Some(error), usage: self.usage(), ..TurnClose::default() };
        self.conversation.close(close, said);
    }

    fn usage(&self) -> Option<JsonText> {
        let fields: Vec<String> = self
            .usage
            .iter()
            .map(|(field, value)| format!("{}:{}", JsonText::string(field).as_str(), value.get()))
            .collect();
        (!fields.is_empty()).then(|| JsonText::new_unchecked(format!("{{{}}}", fields.join(","))))
    }

    fn part(&mut self, place: Place) -> u32 {
        let next = self.places.len() as u32;
        *self.places.entry(place).or_insert(next)
    }

    fn message(&mut self) -> &mut OpenMessage {
        self.message.get_or_insert_with(|| OpenMessage::new(None))
    }
}
