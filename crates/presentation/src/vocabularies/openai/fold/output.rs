//! The items of a response, and the events that build them at the client. An event that repeats a text has a gap for
//! it.

use std::rc::Rc;

use tokenrail_domain::{Agent, MessageOrdinal, Part, Sequence, Turn};

use super::{OpenAi, ResponseFrame};
use crate::fold::Frames;
use crate::vocabularies::openai::dto::{Gap, GapText, ItemStatus, PartDto, ResponseDto, StreamEvent};
use crate::vocabularies::openai::journal_text::{JournalText, TextPart};
use crate::vocabularies::openai::pieces::About;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::said_items::{CallResult, ItemKind, SaidItem, SaidItems};
use crate::vocabularies::turns::said_words::WordKind;

/// The items so far. Every change is sent as events, whose numbers are counted here.
pub(super) struct Output {
    items: Rc<SaidItems>,
    /// The number of the next event of the stream.
    next: u64,
    /// The event of the journal that is applied.
    at: Sequence,
    /// How many bytes of the results of tools the whole response may still contain.
    result_bytes: usize,
}

/// Gives an event its number and sends it.
fn send(next: &mut u64, event: StreamEvent<'_>, about: About<'_>, out: &mut impl Frames<OpenAi>) {
    let sequence_number = *next;
    *next += 1;
    out.frame(ResponseFrame { event: StreamEvent { sequence_number, ..event }, about });
}

impl Output {
    pub(super) fn new(agent: &Agent, turn: &Turn, result_bytes: usize) -> Self {
        let id = ResponseId { agent: turn.agent, turn: turn.number };
        let items = Rc::new(SaidItems::new(id, agent.kind.clone()));
        Self { items, next: 0, at: Sequence::START, result_bytes }
    }

    pub(super) fn items(&self) -> &Rc<SaidItems> {
        &self.items
    }

    /// Whether it has a text that the agent has not discarded.
    pub(super) fn has_text(&self) -> bool {
        self.items.next_in(Gap::Said, 0).is_some()
    }

    /// Sets the event of the journal that is applied.
    pub(super) fn apply(&mut self, event: Sequence) {
        self.at = event;
    }

    /// Sends an event about the whole response.
    pub(super) fn lifecycle(
        &mut self,
        kind: &'static str,
        response: &ResponseDto,
        out: &mut impl Frames<OpenAi>,
    ) {
        let event = StreamEvent { kind, response: Some(response), ..StreamEvent::default() };
        send(&mut self.next, event, About::Everything(&self.items), out);
    }

    fn item(&mut self, position: usize) -> Option<&mut SaidItem> {
        Rc::make_mut(&mut self.items).get_mut(position)
    }

    /// Begins an item in the event that is applied, or in this block of it. Returns its position.
    fn begin(
        &mut self,
        kind: ItemKind,
        message: Option<MessageOrdinal>,
        block: Option<Part>,
        tool: &str,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let position = self.items.len();
        Rc::make_mut(&mut self.items).push(SaidItem::new(kind, message, (self.at, block)));
        self.whole_item("response.output_item.added", position, GapText::Given(tool), out);
        position
    }

    /// Sends an event with the whole item.
    fn whole_item(
        &mut self,
        kind: &'static str,
        position: usize,
        tool: GapText<'_>,
        out: &mut impl Frames<OpenAi>,
    ) {
        let Some(item) = self.items.get(position) else { return };
        let dto = self.items.dto(position, item, tool);
        let event =
            StreamEvent { kind, output_index: Some(position), item: Some(dto), ..StreamEvent::default() };
        send(&mut self.next, event, About::Item(item), out);
    }

    /// Sends an event about an item, with the texts in it, or with gaps for them.
    fn of_item(&mut self, position: usize, event: StreamEvent<'_>, out: &mut impl Frames<OpenAi>) {
        let Some(item) = self.items.get(position) else { return };
        let item_id = Some(self.items.id(position, item.kind));
        let about = if event.delta.is_some() { About::Nothing } else { About::Item(item) };
        let event = StreamEvent { output_index: Some(position), item_id, ..event };
        send(&mut self.next, event, about, out);
    }

    /// Begins an item with text or reasoning. Returns its position.
    pub(super) fn begin_words(
        &mut self,
        kind: WordKind,
        message: MessageOrdinal,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let position = self.begin(ItemKind::Words(kind), Some(message), None, "", out);
        let part = Some(kind.part(GapText::Given("")));
        self.of_item(position, StreamEvent { part, ..kind.event(kind.part_added()) }, out);
        position
    }

    pub(super) fn more_words(
        &mut self,
        position: usize,
        (kind, what): (WordKind, TextPart),
        text: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        self.extend(position, what);
        let (delta, logprobs) = (Some(text), kind.logprobs());
        self.of_item(position, StreamEvent { delta, logprobs, ..kind.event(kind.delta()) }, out);
    }

    /// The event that is applied has more of the text of an item.
    fn extend(&mut self, position: usize, what: TextPart) {
        let at = self.at;
        if let Some(item) = self.item(position) {
            let first = item.text.map_or(at, |text| text.first);
            item.text = Some(JournalText { first, last: at, what });
        }
    }

    /// Ends an item with text or reasoning.
    pub(super) fn end_words(
        &mut self,
        position: usize,
        kind: WordKind,
        status: ItemStatus,
        out: &mut impl Frames<OpenAi>,
    ) {
        let (text, logprobs) = (Some(GapText::Gap(Gap::Text)), kind.logprobs());
        self.of_item(position, StreamEvent { text, logprobs, ..kind.event(kind.text_done()) }, out);
        let part = Some(kind.part(GapText::Gap(Gap::Text)));
        self.of_item(position, StreamEvent { part, ..kind.event(kind.part_done()) }, out);
        self.end_item(position, status, out);
    }

    /// Ends an item, whatever it is.
    pub(super) fn end_item(&mut self, position: usize, status: ItemStatus, out: &mut impl Frames<OpenAi>) {
        if let Some(item) = self.item(position) {
            item.status = status;
        }
        self.whole_item("response.output_item.done", position, GapText::Gap(Gap::Name), out);
    }

    /// Begins a tool call. Returns its position.
    pub(super) fn begin_call(
        &mut self,
        tool: &str,
        message: Option<MessageOrdinal>,
        block: Option<Part>,
        out: &mut impl Frames<OpenAi>,
    ) -> usize {
        let position = self.begin(ItemKind::Call, message, block, tool, out);
        let kind = "response.mcp_call.in_progress";
        self.of_item(position, StreamEvent { kind, ..StreamEvent::default() }, out);
        position
    }

    pub(super) fn more_arguments(
        &mut self,
        position: usize,
        what: TextPart,
        text: &str,
        out: &mut impl Frames<OpenAi>,
    ) {
        if text.is_empty() {
            return;
        }
        self.extend(position, what);
        let (kind, delta) = ("response.mcp_call_arguments.delta", Some(text));
        self.of_item(position, StreamEvent { kind, delta, ..StreamEvent::default() }, out);
    }

    /// Ends the arguments of a call. `whole` replaces what was streamed.
    pub(super) fn end_arguments(
        &mut self,
        position: usize,
        whole: Option<TextPart>,
        out: &mut impl Frames<OpenAi>,
    ) {
        let at = self.at;
        let Some(item) = self.item(position) else { return };
        if let Some(whole) = whole {
            item.text = Some(JournalText::in_event(at, whole));
        }
        let arguments = Some(if item.text.is_some() { GapText::Gap(Gap::Text) } else { GapText::Given("") });
        let kind = "response.mcp_call_arguments.done";
        self.of_item(position, StreamEvent { kind, arguments, ..StreamEvent::default() }, out);
    }

    /// Ends a tool call with the result in the event that is applied, which has this many bytes.
    pub(super) fn end_call(
        &mut self,
        position: usize,
        bytes: usize,
        is_error: bool,
        out: &mut impl Frames<OpenAi>,
    ) {
        let event = self.at;
        if let Some(item) = self.item(position) {
            item.result = Some(CallResult { event, is_error });
        }
        let (kind, status) = if is_error {
            ("response.mcp_call.failed", ItemStatus::Failed)
        } else {
            ("response.mcp_call.completed", ItemStatus::Completed)
        };
        self.of_item(position, StreamEvent { kind, ..StreamEvent::default() }, out);
        self.end_item(position, status, out);
        self.keep(position, bytes);
    }

    /// Leaves the result of a call out of the whole response if there is no room for it.
    fn keep(&mut self, position: usize, bytes: usize) {
        if bytes <= self.result_bytes {
            self.result_bytes -= bytes;
        } else if let Some(item) = self.item(position) {
            item.result = None;
        }
    }

    /// Omits the words of a message, and these calls, from the whole response.
    pub(super) fn discard(&mut self, message: MessageOrdinal, calls: &[usize]) {
        for (position, item) in Rc::make_mut(&mut self.items).iter_mut() {
            let is_call = item.kind == ItemKind::Call;
            item.is_discarded |= item.message == Some(message) && (!is_call || calls.contains(&position));
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
    fn part(self, text: GapText<'_>) -> PartDto<'_> {
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
