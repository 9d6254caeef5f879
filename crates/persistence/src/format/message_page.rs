//! A page of messages, as a conversation shows it: all events that are not deltas, and the deltas of open messages.

use std::collections::HashMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use tokenrail_domain::{Event, Sequence, TurnNumber};
use tokenrail_ports::rules::{EventPage, Flow};
use tokenrail_ports::{MessagePage, PageLimit, StoreError};

use super::rows;

/// The messages that were closed since the oldest open one began, and the last number at which each was closed.
#[derive(Default)]
pub(crate) struct ClosedMessages(HashMap<(TurnNumber, u32), Sequence>);

impl ClosedMessages {
    /// Takes a row of `agent_messages`, in the order of their numbers.
    pub(crate) fn see(&mut self, sequence: Sequence, metadata: &str) -> Result<(), StoreError> {
        if let Some(message) = rows::closed_message(metadata)? {
            self.0.insert(message, sequence);
        }
        Ok(())
    }

    fn is_open(&self, event: &Event) -> bool {
        event.body.delta_of().is_some_and(|message| {
            self.0.get(&(event.turn, message.0)).is_none_or(|closed_at| *closed_at < event.sequence)
        })
    }
}

/// The deltas whose message is neither complete nor abandoned: all of them, or at least one more than a page can take.
pub(crate) struct OpenDeltas {
    closed: ClosedMessages,
    deltas: EventPage,
    /// The page must notice that there is an event that does not fit.
    one_more: Option<Event>,
}

impl OpenDeltas {
    pub(crate) fn new(closed: ClosedMessages, limit: PageLimit) -> Self {
        let limit = PageLimit { events: limit.events.max(1).saturating_add(1), ..limit };
        Self { closed, deltas: EventPage::new(limit), one_more: None }
    }

    /// Takes an event of the journal.
    pub(crate) fn see(&mut self, event: Event) -> Flow {
        if !self.closed.is_open(&event) {
            return Flow::More;
        }
        let flow = self.deltas.offer(event.clone());
        if flow == Flow::Enough {
            self.one_more = Some(event);
        }
        flow
    }

    pub(crate) fn into_events(mut self) -> Vec<Event> {
        self.deltas.events.extend(self.one_more);
        self.deltas.events
    }
}

/// Merges rows and open deltas in the order of their numbers, until the page is full.
pub(crate) struct MessageMerge {
    after: Sequence,
    head: Sequence,
    deltas: Peekable<IntoIter<Event>>,
    page: EventPage,
    flow: Flow,
}

impl MessageMerge {
    pub(crate) fn new((after, head): (Sequence, Sequence), deltas: Vec<Event>, limit: PageLimit) -> Self {
        let deltas = deltas.into_iter().peekable();
        Self { after, head, deltas, page: EventPage::new(limit), flow: Flow::More }
    }

    /// Takes the next event that is not a delta.
    pub(crate) fn offer(&mut self, event: Event) -> Flow {
        self.deltas_before(event.sequence);
        if self.flow == Flow::More {
            self.flow = self.page.offer(event);
        }
        self.flow
    }

    pub(crate) fn into_page(mut self) -> MessagePage {
        self.deltas_before(Sequence(u64::MAX));
        let up_to = match self.flow {
            Flow::More => self.head,
            Flow::Enough => self.page.events.last().map_or(self.after, |event| event.sequence),
        };
        MessagePage { events: self.page.events, up_to, head: self.head }
    }

    fn deltas_before(&mut self, end: Sequence) {
        while self.flow == Flow::More
            && let Some(delta) = self.deltas.next_if(|delta| delta.sequence < end)
        {
            self.flow = self.page.offer(delta);
        }
    }
}
