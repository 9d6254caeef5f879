//! A client's screen: the client's half of the protocol.

use std::collections::BTreeMap;

use tokenrail_domain::{Event, EventBody, MessageOrdinal, MessageOutcome, TurnNumber};
use tokenrail_ports::MessagePage;

/// A client's screen.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct View {
    /// The highest number that was applied.
    pub(crate) last: u64,
    pub(crate) items: BTreeMap<u64, Item>,
    open: BTreeMap<(TurnNumber, MessageOrdinal), u64>,
}

/// One entry of the screen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A bubble that grows.
    Open(String),
    Bubble {
        text: String,
        outcome: MessageOutcome,
    },
    Other(Box<EventBody>),
}

impl View {
    /// Applies a live event by the rule of the protocol: drop it if its number is not above the last one.
    ///
    /// # Errors
    /// A gap after the last number. There must never be one.
    pub(crate) fn live(&mut self, event: &Event) -> Result<(), String> {
        let number = event.sequence.0;
        if number <= self.last {
            return Ok(());
        }
        if number != self.last + 1 {
            return Err(format!("G2: a client that has {} was given {number}", self.last));
        }
        self.apply(event);
        self.last = number;
        Ok(())
    }

    /// Applies a page of the history, which leaves out the deltas of complete messages.
    pub(crate) fn page(&mut self, page: &MessagePage) {
        let last = self.last;
        for event in page.events.iter().filter(|event| last < event.sequence.0) {
            self.apply(event);
        }
        self.last = self.last.max(page.up_to.0);
    }

    fn apply(&mut self, event: &Event) {
        let number = event.sequence.0;
        match &event.body {
            EventBody::TextDelta { message, text, .. } => self.grow(event.turn, *message, number, text),
            body if body.is_delta() => {
                if let Some(message) = body.delta_of() {
                    self.grow(event.turn, message, number, "");
                }
            }
            EventBody::Message(complete) => {
                if let Some(open) = self.open.remove(&(event.turn, complete.message)) {
                    self.items.remove(&open);
                }
                let place = complete.first_sequence.map_or(number, |first| first.0);
                let bubble = Item::Bubble { text: complete.text(), outcome: complete.outcome };
                self.items.insert(place, bubble);
            }
            EventBody::Abandoned { message } => {
                if let Some(open) = self.open.remove(&(event.turn, *message)) {
                    self.items.remove(&open);
                }
            }
            body => {
                self.items.insert(number, Item::Other(Box::new(body.clone())));
            }
        }
    }

    fn grow(&mut self, turn: TurnNumber, message: MessageOrdinal, number: u64, more: &str) {
        let place = *self.open.entry((turn, message)).or_insert(number);
        if let Item::Open(text) = self.items.entry(place).or_insert_with(|| Item::Open(String::new())) {
            text.push_str(more);
        }
    }

    /// Every text on the screen, from top to bottom.
    pub(crate) fn bubbles(&self) -> Vec<&str> {
        let text = |item| match item {
            &Item::Open(ref text) | &Item::Bubble { ref text, .. } => Some(&**text),
            Item::Other(_) => None,
        };
        self.items.values().filter_map(text).collect()
    }
}
