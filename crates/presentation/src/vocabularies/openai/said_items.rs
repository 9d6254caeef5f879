//! The items of a response without their texts, which are in the journal. So what an item takes in memory does not
//! depend on what the agent says.

use tokenrail_domain::{MessageOrdinal, Part, Sequence};

use super::dto::{Gap, GapText, ItemStatus, McpError, OutputItem, OutputText, SummaryText};
use super::journal_text::{JournalText, TextPart};
use super::response_id::{CALL, MESSAGE, REASONING, ResponseId};
use crate::vocabularies::turns::said_words::WordKind;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Words(WordKind),
    Call,
}

/// An item of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SaidItem {
    pub(crate) kind: ItemKind,
    pub(crate) status: ItemStatus,
    pub(crate) message: Option<MessageOrdinal>,
    /// The event that begins it, and the block if it is a complete message.
    pub(crate) begin: (Sequence, Option<Part>),
    /// What it says so far. `None` if that is nothing.
    pub(crate) text: Option<JournalText>,
    pub(crate) result: Option<CallResult>,
    /// Whether the whole response leaves it out.
    pub(crate) is_discarded: bool,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallResult {
    pub(crate) event: Sequence,
    pub(crate) is_error: bool,
}

/// The items of a response, in the order in which they began.
#[derive(Debug, Clone)]
pub(crate) struct SaidItems {
    id: ResponseId,
    /// The agent type, which stands for the server that calls the tools.
    label: String,
    list: Vec<SaidItem>,
}

impl SaidItem {
    pub(crate) fn new(
        kind: ItemKind,
        message: Option<MessageOrdinal>,
        begin: (Sequence, Option<Part>),
    ) -> Self {
        let status = ItemStatus::InProgress;
        Self { kind, status, message, begin, text: None, result: None, is_discarded: false }
    }

    /// Where the journal has what belongs into a gap. `None` if nothing does.
    pub(crate) fn text_in(&self, gap: Gap) -> Option<JournalText> {
        let (event, block) = self.begin;
        match gap {
            Gap::Name => Some(JournalText::in_event(event, TextPart::Tool(block))),
            Gap::Text => self.text,
            Gap::Result => self.result.map(|result| JournalText::in_event(result.event, TextPart::Result)),
            Gap::Line | Gap::Items | Gap::Said | Gap::Streamed | Gap::Done => None,
        }
    }

    /// Whether a gap for several items contains this one: [`Gap::Said`] and [`Gap::Streamed`] contain texts, and
    /// [`Gap::Done`] reasoning and tool calls.
    pub(crate) fn is_in(&self, gap: Gap) -> bool {
        let is_text = self.kind == ItemKind::Words(WordKind::Text);
        match gap {
            Gap::Said => is_text && !self.is_discarded,
            Gap::Streamed => is_text && self.text.is_some(),
            Gap::Done => !is_text && !self.is_discarded,
            _ => !self.is_discarded,
        }
    }
}

impl SaidItems {
    pub(crate) fn new(id: ResponseId, label: String) -> Self {
        Self { id, label, list: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn push(&mut self, item: SaidItem) {
        self.list.push(item);
    }

    pub(crate) fn get(&self, position: usize) -> Option<&SaidItem> {
        self.list.get(position)
    }

    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut SaidItem> {
        self.list.get_mut(position)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut SaidItem)> {
        self.list.iter_mut().enumerate()
    }

    /// The first item from this position on that belongs into a gap.
    pub(crate) fn next_in(&self, gap: Gap, from: usize) -> Option<usize> {
        (from..self.list.len()).find(|position| self.list[*position].is_in(gap))
    }

    /// The id of an item.
    pub(crate) fn id(&self, position: usize, kind: ItemKind) -> String {
        let prefix = match kind {
            ItemKind::Words(WordKind::Text) => MESSAGE,
            ItemKind::Words(WordKind::Reasoning) => REASONING,
            ItemKind::Call => CALL,
        };
        self.id.item(prefix, position)
    }

    /// An item as clients see it. `tool`: the name of the tool that it calls.
    pub(crate) fn dto<'a>(&'a self, position: usize, item: &SaidItem, tool: GapText<'a>) -> OutputItem<'a> {
        let (id, status) = (self.id(position, item.kind), item.status);
        let has_text = item.text.is_some();
        match item.kind {
            ItemKind::Words(WordKind::Text) => {
                let content = has_text.then(OutputText::new).into_iter().collect();
                OutputItem::Message { id, role: "assistant", status, content }
            }
            ItemKind::Words(WordKind::Reasoning) => {
                let summary = has_text.then(SummaryText::new).into_iter().collect();
                OutputItem::Reasoning { id, status, summary }
            }
            ItemKind::Call => OutputItem::McpCall {
                id,
                status,
                server_label: &self.label,
                name: tool,
                arguments: if has_text { GapText::Gap(Gap::Text) } else { GapText::Given("") },
                output: item.result.filter(|result| !result.is_error).map(|_| Gap::Result),
                error: item.result.filter(|result| result.is_error).map(|_| McpError::new()),
                approval_request_id: (),
            },
        }
    }
}
