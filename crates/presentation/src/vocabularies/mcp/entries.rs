//! Events as the entries of a page: the pieces of a text become one entry, and what a model need not read is left out.
//!
//! This is as pure as a [`Fold`](crate::fold::Fold), but it is none: it makes one page, and stops when that is full.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{
    CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, Notice, Sequence, TurnOutcome,
    TurnResult,
};

use super::dto::{AskedDto, EntryDto, PIECE_BYTES, SaidDto, Shortened, settled};
use crate::json::plain_text;
use crate::vocabularies::turns::said_words::{SaidWords, WordKind};
use crate::vocabularies::turns::turn_events::failure;

/// One page of entries. Any two pages that follow each other contain the same text as one page: a piece of a text is an
/// entry of its own if the page before it ends within the text.
pub(super) struct EntryPage {
    entries: Vec<EntryDto>,
    bytes: usize,
    most: usize,
    since: Sequence,
    up_to: Sequence,
    is_full: bool,
    /// What the incomplete messages have said in deltas, also before the page.
    spoken: BTreeMap<MessageOrdinal, SaidWords<()>>,
    /// Whether a complete message of the turn has a text.
    has_text: bool,
    /// The messages of the turn that the agent has abandoned on the page. What they said before it does not count.
    abandoned: BTreeSet<MessageOrdinal>,
}

impl EntryPage {
    /// The entries after `since`: about `most` bytes of them, but at least one, which may be cut to `most`.
    pub(super) fn new(since: Sequence, most: usize) -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
            most,
            since,
            up_to: since,
            is_full: false,
            spoken: BTreeMap::new(),
            has_text: false,
            abandoned: BTreeSet::new(),
        }
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

    /// The message that this event completes, and its first event, if that is before the page. The page must hear what
    /// the message has said until then, and only then the event.
    pub(super) fn begun_before(&self, event: &Event) -> Option<(MessageOrdinal, Sequence)> {
        let EventBody::Message(complete) = &event.body else { return None };
        let first = complete.first_sequence.filter(|first| *first <= self.since)?;
        has_words(complete).then_some((complete.message, first))
    }

    /// Hears what a message has said before the page.
    pub(super) fn hear(&mut self, event: &Event, of: MessageOrdinal) {
        if let EventBody::TextDelta { message, part, text } = &event.body
            && *message == of
            && !text.is_empty()
        {
            self.spoken.entry(of).or_default().say(*part, WordKind::Text, text.len());
        }
    }

    /// Whether this event ends a turn with a text that may be the only one. The page must hear what the turn has said
    /// before the page, and only then the event.
    pub(super) fn ends_with_text(&self, event: &Event) -> bool {
        let is_text = matches!(&event.body, EventBody::TurnResult(result) if has_text(result));
        is_text && !self.has_complete_text() && self.spoken.is_empty()
    }

    /// Whether the turn has said a text that cannot be abandoned any more.
    pub(super) fn has_complete_text(&self) -> bool {
        self.has_text
    }

    /// Hears what the turn has said before the page, but not what the agent has abandoned on the page.
    pub(super) fn hear_turn(&mut self, event: &Event) {
        match &event.body {
            EventBody::TextDelta { message, .. } if !self.abandoned.contains(message) => {
                self.hear(event, *message);
            }
            EventBody::Abandoned { message } => drop(self.spoken.remove(message)),
            body => self.has_text |= is_text(body),
        }
    }

    /// The whole text of an event's entry. `None` if it has no entry, or none with a text.
    pub(super) fn whole_text(&mut self, event: &Event) -> Option<String> {
        self.said(event)?.into_text()
    }

    /// Appends an event, if it is after the cursor, and the page has room for it.
    pub(super) fn event(&mut self, event: &Event) {
        if self.is_full {
            return;
        }
        let said = self.said(event);
        if event.sequence <= self.up_to {
            return;
        }
        if let Some(mut said) = said {
            let is_piece = matches!(event.body, EventBody::TextDelta { .. });
            said.shorten(if is_piece { PIECE_BYTES } else { self.most });
            let joins = self.joins(event, &said);
            let bytes = said.bytes(joins);
            if !self.entries.is_empty() && self.most < self.bytes + bytes {
                self.is_full = true;
                return;
            }
            self.bytes += bytes;
            self.append(EntryDto { seq: event.sequence.0, turn: event.turn.0, said }, joins);
        }
        self.up_to = event.sequence;
    }

    /// What an event says that no event before it has said.
    fn said(&mut self, event: &Event) -> Option<SaidDto> {
        let body = &event.body;
        self.has_text |= is_text(body);
        match body {
            EventBody::TextDelta { message, part, text } if !text.is_empty() => {
                self.spoken.entry(*message).or_default().say(*part, WordKind::Text, text.len());
            }
            EventBody::Message(complete) => return self.rest(complete),
            EventBody::Abandoned { message } => {
                self.spoken.remove(message);
                self.abandoned.insert(*message);
            }
            EventBody::TurnResult(result) => {
                self.abandoned.clear();
                let has_said = !std::mem::take(&mut self.spoken).is_empty();
                let is_new = !std::mem::take(&mut self.has_text) && !has_said && has_text(result);
                return Some(turn_end(result, is_new.then(|| result.text.clone())));
            }
            _ => {}
        }
        said(body)
    }

    /// The texts of a complete message that had no deltas.
    fn rest(&mut self, complete: &CompleteMessage) -> Option<SaidDto> {
        let mut spoken = self.spoken.remove(&complete.message).unwrap_or_default();
        if complete.parent_call.is_some() {
            return None;
        }
        let texts = complete.blocks.iter().filter_map(ContentBlock::as_text);
        let rest: String = texts.filter(|text| !spoken.was_said(WordKind::Text, text.len())).collect();
        (!rest.is_empty()).then(|| spoken_text(complete.message, rest))
    }

    /// Whether it is more of the text of the last entry.
    fn joins(&self, event: &Event, said: &SaidDto) -> bool {
        let Some(last) = self.entries.last().filter(|last| last.turn == event.turn.0) else { return false };
        matches!((&last.said, said),
            (SaidDto::Text { message: before, .. }, SaidDto::Text { message, .. }) if before == message)
    }

    fn append(&mut self, entry: EntryDto, joins: bool) {
        if joins
            && let SaidDto::Text { text, .. } = &entry.said
            && let Some(last) = self.entries.last_mut()
            && let SaidDto::Text { text: so_far, .. } = &mut last.said
        {
            so_far.text.push_str(&text.text);
            last.seq = entry.seq;
            return;
        }
        self.entries.push(entry);
    }
}

/// The entry of an event, not cut. `None` if there is none: reasoning, the output of sub-agents, and what a later event
/// repeats.
fn said(body: &EventBody) -> Option<SaidDto> {
    Some(match body {
        EventBody::UserMessage { content, images: _ } => {
            SaidDto::Prompt { text: Shortened::whole(content.clone()) }
        }
        EventBody::TextDelta { message, text, .. } => spoken_text(*message, text.clone()),
        EventBody::Abandoned { message } => SaidDto::Retracted { message: message.0 },
        EventBody::ToolCall(call) if call.parent_call.is_none() => SaidDto::ToolCall {
            tool: call.tool.clone(),
            call_id: call.call.clone(),
            input: Shortened::whole(call.input.as_str().to_owned()),
        },
        EventBody::ToolResult(result) if result.parent_call.is_none() => SaidDto::ToolResult {
            call_id: result.call.clone(),
            is_error: result.is_error,
            text: Shortened::whole(plain_text(&result.content)),
        },
        EventBody::Notice(notice) => match (notice.subtype.as_str(), notice.data.as_str()) {
            (Notice::PERMISSION_REQUEST, data) => {
                SaidDto::PermissionRequest(Box::new(AskedDto::whole(data)?))
            }
            (Notice::PERMISSION_RESOLVED, data) => SaidDto::PermissionResolved { request_id: settled(data)? },
            _ => return None,
        },
        EventBody::Error(error) => SaidDto::Error { text: Shortened::whole(error.text.clone()) },
        EventBody::TurnResult(_)
        | EventBody::Message(_)
        | EventBody::ReasoningDelta { .. }
        | EventBody::ToolInputDelta { .. }
        | EventBody::ToolCall(_)
        | EventBody::ToolResult(_)
        | EventBody::Usage(_) => return None,
    })
}

/// `text`: what the turn has said nowhere else.
fn turn_end(result: &TurnResult, text: Option<String>) -> SaidDto {
    SaidDto::TurnEnd {
        outcome: result.outcome.as_str(),
        error: failure(result).map(|(_, text, _)| text.to_owned()),
        text,
        truncated: false,
    }
}

fn has_words(complete: &CompleteMessage) -> bool {
    complete.blocks.iter().any(|block| block.as_text().is_some_and(|text| !text.is_empty()))
}

/// Whether it is a complete message of the agent itself with a text.
fn is_text(body: &EventBody) -> bool {
    matches!(body, EventBody::Message(complete) if complete.parent_call.is_none() && has_words(complete))
}

/// Some agents send their text only with the result.
fn has_text(result: &TurnResult) -> bool {
    result.outcome == TurnOutcome::Completed && !result.text.is_empty()
}

fn spoken_text(message: MessageOrdinal, text: String) -> SaidDto {
    SaidDto::Text { message: message.0, text: Shortened::whole(text) }
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

    pub(super) fn has(&self, request: &str) -> bool {
        self.0.contains_key(request)
    }

    /// Whether there is one that a client with this cursor has not seen, besides those that it has just `answered`.
    pub(super) fn has_newer(&self, since: Sequence, answered: &[String]) -> bool {
        self.0.iter().any(|(request, (asked_at, _))| since < *asked_at && !answered.contains(request))
    }

    /// Those that a client with this cursor has not seen, the oldest first.
    pub(super) fn newer(&self, since: Sequence, answered: &[String]) -> Vec<AskedDto> {
        let is_newer = |(request, (asked_at, _)): &(&String, &(Sequence, AskedDto))| {
            since < *asked_at && !answered.contains(request)
        };
        let mut newer: Vec<_> = self.0.iter().filter(is_newer).map(|(_, asked)| asked).collect();
        newer.sort_by_key(|(asked_at, _)| *asked_at);
        newer.into_iter().map(|(_, asked)| asked.clone()).collect()
    }

    pub(super) fn into_list(self) -> Vec<AskedDto> {
        self.0.into_values().map(|(_, asked)| asked).collect()
    }
}

#[cfg(test)]
mod tests;
