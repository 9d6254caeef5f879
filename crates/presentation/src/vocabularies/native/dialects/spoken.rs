//! Which messages of a turn are open, and how much of their text was sent. Every message starts once and ends once. An
//! event after the end of its message is an orphan, and is not sent.

use std::collections::BTreeMap;

use tokenrail_domain::{Event, MessageOrdinal, Sequence, Timestamp};

/// The messages of one turn.
#[derive(Debug, Default)]
pub(crate) struct Spoken(BTreeMap<MessageOrdinal, MessageState>);

#[derive(Debug)]
enum MessageState {
    Open(Open),
    Ended,
}

/// A message that is not complete yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// Its first event, and the time of that event.
    pub(crate) first: Sequence,
    pub(crate) at: Timestamp,
    /// The number of bytes of its text that were sent. The text itself is not kept, because there can be many
    /// followers.
    told_bytes: usize,
}

/// The effect of an event on its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begins,
    GoesOn,
    /// The message has ended: the event is an orphan.
    Orphan,
}

impl Spoken {
    /// Takes in more of a message: `text_bytes` bytes of text, or 0 bytes if the event has no text.
    pub(crate) fn delta(&mut self, event: &Event, message: MessageOrdinal, text_bytes: usize) -> Step {
        match self.0.get_mut(&message) {
            Some(MessageState::Open(open)) => {
                open.told_bytes += text_bytes;
                Step::GoesOn
            }
            Some(MessageState::Ended) => Step::Orphan,
            None => {
                let open = Open { first: event.sequence, at: event.at, told_bytes: text_bytes };
                self.0.insert(message, MessageState::Open(open));
                Step::Begins
            }
        }
    }

    /// Ends a message that has this text. Returns the rest of the text that was not sent yet, which may be empty.
    pub(crate) fn end<'a>(&mut self, message: MessageOrdinal, text: &'a str) -> (Step, &'a str) {
        match self.0.insert(message, MessageState::Ended) {
            None => (Step::Begins, text),
            Some(MessageState::Open(open)) => (Step::GoesOn, text.get(open.told_bytes..).unwrap_or_default()),
            Some(MessageState::Ended) => (Step::Orphan, ""),
        }
    }

    /// Abandons a message. Returns whether it was open.
    pub(crate) fn abandon(&mut self, message: MessageOrdinal) -> bool {
        matches!(self.0.insert(message, MessageState::Ended), Some(MessageState::Open(_)))
    }

    /// The open messages.
    pub(crate) fn open(&self) -> impl Iterator<Item = (MessageOrdinal, Open)> + '_ {
        self.0.iter().filter_map(|(message, standing)| match standing {
            MessageState::Open(open) => Some((*message, *open)),
            MessageState::Ended => None,
        })
    }

    /// Forgets the messages at the end of the turn. The journal already contains the end of each of them.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
