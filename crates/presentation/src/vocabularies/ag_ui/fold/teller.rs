//! Sends the events that come from one entry of the journal.

use tokenrail_domain::{Event, Timestamp};

use super::AgUi;
use crate::fold::Frames;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::dto::{AgUiEvent, Assistant, EventDto, PlaceDto, Reasoning};
use crate::vocabularies::turns::said_words::WordKind;

/// The longest text of one event, in bytes. Clients refuse a run with an event that is too long.
const PIECE_BYTES: usize = 256 << 10;

/// As much of a text as one event may have. For texts that cannot go on in another event.
pub(super) fn piece(text: &str) -> &str {
    &text[..text.floor_char_boundary(PIECE_BYTES)]
}

/// Sends the events that come from one entry of the journal. Each has a cursor, whether it is sent or not.
pub(super) struct Teller<'t, T> {
    out: &'t mut T,
    at: Timestamp,
    cursor: ThreadCursor,
    /// Whether the client has asked for what comes now.
    pub(super) is_heard: bool,
}

impl<'t, T: Frames<AgUi>> Teller<'t, T> {
    pub(super) fn new(event: &Event, is_heard: bool, out: &'t mut T) -> Self {
        let cursor = ThreadCursor { sequence: event.sequence, number: 0 };
        Self { out, at: event.at, cursor, is_heard }
    }

    pub(super) fn tell(&mut self, event: AgUiEvent<'_>) {
        self.tell_of(None, event);
    }

    /// Sends an event of a sub-agent, or of the agent itself.
    pub(super) fn tell_of(&mut self, sub_agent: Option<&str>, event: AgUiEvent<'_>) {
        self.tell_result(sub_agent, event, false);
    }

    /// The same for the result of a tool call.
    pub(super) fn tell_result(&mut self, sub_agent: Option<&str>, event: AgUiEvent<'_>, is_error: bool) {
        self.cursor.number += 1;
        if self.is_heard {
            let place = PlaceDto { cursor: self.cursor, is_error };
            self.out.frame(EventDto::new(event, sub_agent, self.at, place));
        }
    }

    /// The place of an event that is to be sent later.
    pub(super) fn reserve(&mut self) -> (Timestamp, ThreadCursor) {
        self.cursor.number += 1;
        (self.at, self.cursor)
    }

    /// Sends an event at a reserved place.
    pub(super) fn tell_at(&mut self, (at, cursor): (Timestamp, ThreadCursor), event: AgUiEvent<'_>) {
        if self.is_heard {
            self.out.frame(EventDto::new(event, None, at, PlaceDto { cursor, is_error: false }));
        }
    }

    pub(super) fn begin_words(&mut self, kind: WordKind, message_id: &str, sub_agent: Option<&str>) {
        match kind {
            WordKind::Text => {
                self.tell_of(sub_agent, AgUiEvent::TextMessageStart { message_id, role: Assistant });
            }
            WordKind::Reasoning => {
                self.tell_of(sub_agent, AgUiEvent::ReasoningStart { message_id });
                self.tell_of(sub_agent, AgUiEvent::ReasoningMessageStart { message_id, role: Reasoning });
            }
        }
    }

    pub(super) fn more_words(
        &mut self,
        kind: WordKind,
        message_id: &str,
        text: &str,
        sub_agent: Option<&str>,
    ) {
        for delta in pieces(text) {
            self.tell_of(
                sub_agent,
                match kind {
                    WordKind::Text => AgUiEvent::TextMessageContent { message_id, delta },
                    WordKind::Reasoning => AgUiEvent::ReasoningMessageContent { message_id, delta },
                },
            );
        }
    }

    pub(super) fn end_words(&mut self, kind: WordKind, message_id: &str, sub_agent: Option<&str>) {
        match kind {
            WordKind::Text => self.tell_of(sub_agent, AgUiEvent::TextMessageEnd { message_id }),
            WordKind::Reasoning => {
                self.tell_of(sub_agent, AgUiEvent::ReasoningMessageEnd { message_id });
                self.tell_of(sub_agent, AgUiEvent::ReasoningEnd { message_id });
            }
        }
    }

    pub(super) fn arguments(&mut self, tool_call_id: &str, text: &str, sub_agent: Option<&str>) {
        for delta in pieces(text) {
            self.tell_of(sub_agent, AgUiEvent::ToolCallArgs { tool_call_id, delta });
        }
    }
}

/// The pieces of a text, none of them empty.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let long = "é🦀".repeat(PIECE_BYTES / 5);
        assert!(pieces("").next().is_none());
        assert_eq!(pieces("a").collect::<Vec<_>>(), ["a"]);
        let cut: Vec<_> = pieces(&long).collect();
        assert!(cut.len() == 2 && cut.iter().all(|piece| (1..=PIECE_BYTES).contains(&piece.len())));
        assert_eq!(cut.concat(), long);
    }
}
