//! A fold of events to entries: the pieces of a text become one entry, and what a model need not read is left out.

use std::collections::BTreeMap;

use tokenrail_domain::{CompleteMessage, Event, EventBody, MessageOrdinal, Notice, Sequence};

use super::dto::{AskedDto, EntryDto, SaidDto, Shortened, settled};
use crate::json::plain_text;
use crate::turn_events::failure;

/// One page of entries. Any two pages that follow each other contain the same text as one page: a piece of a text is an
/// entry of its own if the page before it ends within the text.
pub(super) struct EntryPage {
    entries: Vec<EntryDto>,
    bytes: usize,
    most: usize,
    up_to: Sequence,
    is_full: bool,
}

impl EntryPage {
    /// The entries after `since`: about `most` bytes of them, but at least one.
    pub(super) fn new(since: Sequence, most: usize) -> Self {
        Self { entries: Vec::new(), bytes: 0, most, up_to: since, is_full: false }
    }

    /// The page is complete up to this number.
    pub(super) fn up_to(&self) -> Sequence {
        self.up_to
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn into_entries(self) -> Vec<EntryDto> {
        self.entries
    }

    /// Appends an event, if it is after the cursor, and the page has room for it.
    pub(super) fn event(&mut self, event: &Event) {
        if self.is_full || event.sequence <= self.up_to {
            return;
        }
        if let Some(said) = said(&event.body) {
            let bytes = said.bytes();
            if !self.entries.is_empty() && self.most < self.bytes + bytes {
                self.is_full = true;
                return;
            }
            self.bytes += bytes;
            self.append(EntryDto { seq: event.sequence.0, turn: event.turn.0, said });
        }
        self.up_to = event.sequence;
    }

    fn append(&mut self, entry: EntryDto) {
        if let SaidDto::Text { message, text } = &entry.said
            && let Some(last) = self.entries.last_mut()
            && last.turn == entry.turn
            && let SaidDto::Text { message: before, text: so_far } = &mut last.said
            && *before == *message
        {
            so_far.text.push_str(&text.text);
            last.seq = entry.seq;
            return;
        }
        self.entries.push(entry);
    }
}

/// The entry of an event. `None` if there is none: reasoning, the output of sub-agents, and what a later event repeats.
fn said(body: &EventBody) -> Option<SaidDto> {
    Some(match body {
        EventBody::UserMessage { content, images: _ } => {
            SaidDto::Prompt { text: Shortened::speech(content.clone()) }
        }
        EventBody::TextDelta { message, text, .. } => spoken(*message, text.clone()),
        EventBody::Message(complete) => return whole(complete),
        EventBody::Abandoned { message } => SaidDto::Retracted { message: message.0 },
        EventBody::ToolCall(call) if call.parent_call.is_none() => SaidDto::ToolCall {
            tool: call.tool.clone(),
            call_id: call.call.clone(),
            input: Shortened::field(call.input.as_str().to_owned()),
        },
        EventBody::ToolResult(result) if result.parent_call.is_none() => SaidDto::ToolResult {
            call_id: result.call.clone(),
            is_error: result.is_error,
            text: Shortened::field(plain_text(&result.content)),
        },
        EventBody::Notice(notice) => match (notice.subtype.as_str(), notice.data.as_str()) {
            (Notice::PERMISSION_REQUEST, data) => SaidDto::PermissionRequest(Box::new(AskedDto::read(data)?)),
            (Notice::PERMISSION_RESOLVED, data) => SaidDto::PermissionResolved { request_id: settled(data)? },
            _ => return None,
        },
        EventBody::Error(error) => SaidDto::Error { text: Shortened::speech(error.text.clone()) },
        EventBody::TurnResult(result) => SaidDto::TurnEnd {
            outcome: result.outcome.as_str(),
            error: failure(result).map(|(_, text, _)| text.to_owned()),
        },
        EventBody::ReasoningDelta { .. }
        | EventBody::ToolInputDelta { .. }
        | EventBody::ToolCall(_)
        | EventBody::ToolResult(_)
        | EventBody::Usage(_) => return None,
    })
}

fn spoken(message: MessageOrdinal, text: String) -> SaidDto {
    SaidDto::Text { message: message.0, text: Shortened::speech(text) }
}

/// The text of a message that had no deltas. Otherwise they have said it already, whatever the client's cursor is.
fn whole(complete: &CompleteMessage) -> Option<SaidDto> {
    let is_said = complete.first_sequence.is_some() || complete.parent_call.is_some();
    let text = if is_said { String::new() } else { complete.text() };
    (!text.is_empty()).then(|| spoken(complete.message, text))
}

/// The open requests of an agent, as its journal shows them.
#[derive(Default)]
pub(super) struct OpenAsked(BTreeMap<String, (Sequence, AskedDto)>);

impl OpenAsked {
    pub(super) fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Notice(notice) => {
                let data = notice.data.as_str();
                if notice.subtype == Notice::PERMISSION_REQUEST {
                    let asked = AskedDto::read(data);
                    self.0.extend(asked.map(|asked| (asked.request_id.clone(), (event.sequence, asked))));
                } else if notice.subtype == Notice::PERMISSION_RESOLVED
                    && let Some(request) = settled(data)
                {
                    self.0.remove(&request);
                }
            }
            // Nobody can answer after the turn.
            EventBody::TurnResult(_) => self.0.clear(),
            _ => {}
        }
    }

    /// Whether there is one that a client with this cursor has not seen.
    pub(super) fn has_newer(&self, since: Sequence) -> bool {
        self.0.values().any(|(asked_at, _)| since < *asked_at)
    }

    pub(super) fn into_list(self) -> Vec<AskedDto> {
        self.0.into_values().map(|(_, asked)| asked).collect()
    }
}
