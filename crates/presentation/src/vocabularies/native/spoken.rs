//! Which messages of a turn are open, and how much of their text was told. Every message begins once and ends once:
//! what comes after its end is an orphan, and is not told.

use std::collections::BTreeMap;

use tokenrail_domain::{Event, MessageOrdinal, Sequence, Timestamp};

/// The messages of one turn.
#[derive(Debug, Default)]
pub(crate) struct Spoken(BTreeMap<MessageOrdinal, Standing>);

#[derive(Debug)]
enum Standing {
    Open(Open),
    Ended,
}

/// A message that is being said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// Its first event, and the time of that.
    pub(crate) first: Sequence,
    pub(crate) at: Timestamp,
    /// How many bytes of its text were told. The text itself is not kept: there may be many listeners.
    told_bytes: usize,
}

/// What an event does to its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begins,
    GoesOn,
    /// The message has ended: the event is an orphan.
    Orphan,
}

impl Spoken {
    /// More of a message: so many bytes of text, or something that is no text.
    pub(crate) fn delta(&mut self, event: &Event, message: MessageOrdinal, text_bytes: usize) -> Step {
        match self.0.get_mut(&message) {
            Some(Standing::Open(open)) => {
                open.told_bytes += text_bytes;
                Step::GoesOn
            }
            Some(Standing::Ended) => Step::Orphan,
            None => {
                let open = Open { first: event.sequence, at: event.at, told_bytes: text_bytes };
                self.0.insert(message, Standing::Open(open));
                Step::Begins
            }
        }
    }

    /// The end of a message with that text; gives the end of the text where that was not told yet, else nothing.
    pub(crate) fn end<'a>(&mut self, message: MessageOrdinal, text: &'a str) -> (Step, &'a str) {
        match self.0.insert(message, Standing::Ended) {
            None => (Step::Begins, text),
            Some(Standing::Open(open)) => (Step::GoesOn, text.get(open.told_bytes..).unwrap_or_default()),
            Some(Standing::Ended) => (Step::Orphan, ""),
        }
    }

    /// A message is thrown away; false where nothing of it was told.
    pub(crate) fn abandon(&mut self, message: MessageOrdinal) -> bool {
        matches!(self.0.insert(message, Standing::Ended), Some(Standing::Open(_)))
    }

    /// The messages that are being said.
    pub(crate) fn open(&self) -> impl Iterator<Item = (MessageOrdinal, Open)> + '_ {
        self.0.iter().filter_map(|(message, standing)| match standing {
            Standing::Open(open) => Some((*message, *open)),
            Standing::Ended => None,
        })
    }

    /// The turn has ended. Whoever wrote the journal has ended its messages.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
