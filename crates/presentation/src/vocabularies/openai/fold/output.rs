//! The items of a response, and the events that build them at the client.

use std::collections::BTreeMap;

use tokenrail_domain::{Agent, MessageOrdinal, Turn};

use super::OpenAi;
use crate::fold::Frames;
use crate::said_words::WordKind;
use crate::vocabularies::openai::dto::{ItemStatus, McpError, OutputItem, PartDto, ResponseDto, StreamEvent};
use crate::vocabularies::openai::response_id::{CALL, MESSAGE, REASONING, ResponseId};

/// The items so far. Every change is sent as events, whose numbers are counted here.
pub(super) struct Output {
    id: ResponseId,
    /// The agent type, which stands for the server that calls the tools.
    label: String,
    /// The number of the next event.
    next: u64,
    /// The number of items that have begun.
    count: usize,
    items: BTreeMap<usize, Held>,
    /// Whether items are kept for the whole response. If not, each is forgotten at its end, and words at once.
    keeps_items: bool,
    /// How many bytes of the results of tools may still be kept.
    result_bytes: usize,
}

/// An item, as it is kept.
struct Held {
    item: OutputItem,
    message: Option<MessageOrdinal>,
    is_discarded: bool,
}

/// Gives an event its number and sends it.
fn send(next: &mut u64, event: StreamEvent<'_>, out: &mut impl Frames<OpenAi>) {
    let sequence_number = *next;
    *next += 1;
    out.frame(StreamEvent { sequence_number, ..event });
}

impl Output {
    pub(super) fn new(agent: &Agent, turn: &Turn, result_bytes: usize) -> Self {
        let id = ResponseId { agent: turn.agent, turn: turn.number };
        let (label, items) = (agent.kind.clone(), BTreeMap::new());
        Self { id, label, next: 0, count: 0, items, keeps_items: true, result_bytes }
    }

    /// Keeps nothing for the whole response.
    pub(super) fn keep_no_items(&mut self) {
        self.keeps_items = false;
    }

    /// Takes the items of the whole response.
    pub(super) fn take(&mut self) -> Vec<OutputItem> {
        let items = std::mem::take(&mut self.items);
        items.into_values().filter(|held| !held.is_discarded).map(|held| held.item).collect()
    }

    /// Sends an event about the whole response.
    pub(super) fn lifecycle(
        &mut self,
        kind: &'static str,
        response: &ResponseDto,
        out: &mut impl Frames<OpenAi>,
    ) {
        send(&mut self.next, StreamEvent { kind, response: Some(response), ..StreamEvent::default() }, out);
    }

    fn begin(
        &mut self,
        item: OutputItem,
        message: Option<MessageOrdinal>,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let position = self.count;
        self.count += 1;
        self.items.insert(position, Held { item, message, is_discarded: false });
        self.whole_item("response.output_item.added", position, out);
        position
    }

    /// Sends an event with the whole item.
    fn whole_item(&mut self, kind: &'static str, position: usize, out: &mut impl Frames<OpenAi>) {
        let Some(held) = self.items.get(&position) else { return };
        let (output_index, item) = (Some(position), Some(&held.item));
        send(&mut self.next, StreamEvent { kind, output_index, item, ..StreamEvent::default() }, out);
    }

    /// Sends an event about an item. `fill` adds what the event says of the item.
    fn of_item(
        &mut self,
        position: usize,
        event: &StreamEvent<'_>,
        out: &mut impl Frames<OpenAi>,
        fill: impl for<'a> FnOnce(&'a OutputItem, &mut StreamEvent<'a>),
    ) {
        let Some(Held { item, .. }) = self.items.get(&position) else { return };
        let StreamEvent { kind, content_index, summary_index, .. } = *event;
        let (output_index, item_id) = (Some(position), Some(item.id()));
        let mut event = StreamEvent {
            kind,
            output_index,
            item_id,
            content_index,
            summary_index,
            ..StreamEvent::default()
        };
        fill(item, &mut event);
        send(&mut self.next, event, out);
    }

    /// Begins an item with text or reasoning. Returns its position.
    pub(super) fn begin_words(
        &mut self,
        kind: WordKind,
        message: MessageOrdinal,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let (at, status) = (self.count, ItemStatus::InProgress);
        let item = match kind {
            WordKind::Text => OutputItem::Message {
                id: self.id.item(MESSAGE, at),
                role: "assistant",
                status,
                content: Vec::new(),
            },
            WordKind::Reasoning => {
                OutputItem::Reasoning { id: self.id.item(REASONING, at), status, summary: Vec::new() }
            }
        };
        let position = self.begin(item, Some(message), out);
        self.of_item(position, &kind.event(kind.part_added()), out, |_, event| {
            event.part = Some(kind.part(""));
        });
        position
    }

    pub(super) fn more_words(
        &mut self,
        position: usize,
        kind: WordKind,
        text: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        let Some(held) = self.items.get_mut(&position) else { return };
        if self.keeps_items {
            held.item.add(text);
        }
        let event = StreamEvent {
            output_index: Some(position),
            item_id: Some(held.item.id()),
            delta: Some(text),
            logprobs: kind.logprobs(),
            ..kind.event(kind.delta())
        };
        send(&mut self.next, event, out);
    }

    /// Ends an item with text or reasoning.
    pub(super) fn end_words(
        &mut self,
        position: usize,
        kind: WordKind,
        status: ItemStatus,
        out: &mut impl Frames<OpenAi>,
    ) {
        self.of_item(position, &kind.event(kind.text_done()), out, |item, event| {
            (event.text, event.logprobs) = (Some(item.text()), kind.logprobs());
        });
        self.of_item(position, &kind.event(kind.part_done()), out, |item, event| {
            event.part = Some(kind.part(item.text()));
        });
        self.end_item(position, status, out);
    }

    /// Ends an item, whatever it is.
    pub(super) fn end_item(&mut self, position: usize, status: ItemStatus, out: &mut impl Frames<OpenAi>) {
        if let Some(held) = self.items.get_mut(&position) {
            held.item.set_status(status);
        }
        self.whole_item("response.output_item.done", position, out);
        if !self.keeps_items {
            self.items.remove(&position);
        }
    }

    fn of_call(
        &mut self,
        position: usize,
        kind: &'static str,
        out: &mut impl Frames<OpenAi>,
        fill: impl for<'a> FnOnce(&'a OutputItem, &mut StreamEvent<'a>),
    ) {
        self.of_item(position, &StreamEvent { kind, ..StreamEvent::default() }, out, fill);
    }

    /// Begins a tool call. Returns its position.
    pub(super) fn begin_call(
        &mut self,
        tool: &str,
        message: Option<MessageOrdinal>,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let item = OutputItem::McpCall {
            id: self.id.item(CALL, self.count),
            status: ItemStatus::InProgress,
            server_label: self.label.clone(),
            name: tool.to_owned(),
            arguments: String::new(),
            output: None,
            error: None,
            approval_request_id: (),
        };
        let position = self.begin(item, message, out);
        self.of_call(position, "response.mcp_call.in_progress", out, |_, _| {});
        position
    }

    pub(super) fn more_arguments(&mut self, position: usize, fragment: &str, out: &mut impl Frames<OpenAi>) {
        if fragment.is_empty() {
            return;
        }
        let Some(held) = self.items.get_mut(&position) else { return };
        held.item.add(fragment);
        let kind = "response.mcp_call_arguments.delta";
        let (output_index, item_id) = (Some(position), Some(held.item.id()));
        let event =
            StreamEvent { kind, output_index, item_id, delta: Some(fragment), ..StreamEvent::default() };
        send(&mut self.next, event, out);
    }

    /// Ends the arguments of a call. `whole` replaces what was streamed.
    pub(super) fn end_arguments(
        &mut self,
        position: usize,
        whole: Option<&str>,
        out: &mut impl Frames<OpenAi>,
    ) {
        if let Some(Held { item: OutputItem::McpCall { arguments, .. }, .. }) = self.items.get_mut(&position)
            && let Some(whole) = whole
        {
            whole.clone_into(arguments);
        }
        let kind = "response.mcp_call_arguments.done";
        self.of_call(position, kind, out, |item, event| event.arguments = Some(item.text()));
    }

    /// Ends a tool call with its result.
    pub(super) fn end_call(
        &mut self,
        position: usize,
        result: String,
        is_error: bool,
        out: &mut impl Frames<OpenAi>,
    ) {
        let bytes = result.len();
        if let Some(Held { item: OutputItem::McpCall { output, error, .. }, .. }) =
            self.items.get_mut(&position)
        {
            if is_error {
                *error = Some(McpError::new(result));
            } else {
                *output = Some(result);
            }
        }
        let (kind, status) = if is_error {
            ("response.mcp_call.failed", ItemStatus::Failed)
        } else {
            ("response.mcp_call.completed", ItemStatus::Completed)
        };
        self.of_call(position, kind, out, |_, _| {});
        self.end_item(position, status, out);
        self.keep(position, bytes);
    }

    /// Keeps the result of a call for the whole response if there is room for it.
    fn keep(&mut self, position: usize, bytes: usize) {
        if bytes <= self.result_bytes {
            self.result_bytes -= bytes;
            return;
        }
        if let Some(Held { item: OutputItem::McpCall { output, error, .. }, .. }) =
            self.items.get_mut(&position)
        {
            (*output, *error) = (None, None);
        }
    }

    /// Omits the words of a message, and these calls, from the whole response.
    pub(super) fn discard(&mut self, message: MessageOrdinal, calls: &[usize]) {
        for (position, held) in &mut self.items {
            let is_call = matches!(held.item, OutputItem::McpCall { .. });
            held.is_discarded |= held.message == Some(message) && (!is_call || calls.contains(position));
        }
    }
}

impl WordKind {
    fn part_added(self) -> &'static str {
        match self {
            Self::Text => "response.content_part.added",
            Self::Reasoning => "response.reasoning_summary_part.added",
        }
    }

    fn part_done(self) -> &'static str {
        match self {
            Self::Text => "response.content_part.done",
            Self::Reasoning => "response.reasoning_summary_part.done",
        }
    }

    fn text_done(self) -> &'static str {
        match self {
            Self::Text => "response.output_text.done",
            Self::Reasoning => "response.reasoning_summary_text.done",
        }
    }

    fn delta(self) -> &'static str {
        match self {
            Self::Text => "response.output_text.delta",
            Self::Reasoning => "response.reasoning_summary_text.delta",
        }
    }

    /// The only part of an item.
    fn part(self, text: &str) -> PartDto<'_> {
        match self {
            Self::Text => PartDto::text(text),
            Self::Reasoning => PartDto::summary(text),
        }
    }

    /// An event of this type about the only part of an item.
    fn event(self, kind: &'static str) -> StreamEvent<'static> {
        let event = StreamEvent { kind, ..StreamEvent::default() };
        match self {
            Self::Text => StreamEvent { content_index: Some(0), ..event },
            Self::Reasoning => StreamEvent { summary_index: Some(0), ..event },
        }
    }

    /// What the texts of events have besides: the probabilities of their tokens, which are not known.
    fn logprobs(self) -> Option<[(); 0]> {
        (self == Self::Text).then_some([])
    }
}
