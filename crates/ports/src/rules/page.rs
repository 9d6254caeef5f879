//! How many events one read returns.

use bytes::Bytes;
use tokenrail_domain::Event;

use crate::PageLimit;

/// Whether a page takes more events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    More,
    Enough,
}

/// Collects events until a limit is reached. The first event is always taken.
#[derive(Debug)]
pub struct EventPage {
    pub events: Vec<Event>,
    limit: PageLimit,
    bytes: usize,
}

impl EventPage {
    pub fn new(limit: PageLimit) -> Self {
        Self { events: Vec::new(), limit, bytes: 0 }
    }

    /// Takes the event if it fits. After [`Flow::Enough`] the event is not in the page, and no further one may be
    /// offered.
    pub fn offer(&mut self, event: Event) -> Flow {
        self.bytes = self.bytes.saturating_add(weight(&event));
        let full = self.limit.events <= self.events.len() || self.limit.bytes < self.bytes;
        if full && !self.events.is_empty() {
            return Flow::Enough;
        }
        self.events.push(event);
        Flow::More
    }
}

/// One limit for the pages of several agents: see [`IJournal::read_many`](crate::IJournal::read_many).
#[derive(Debug)]
pub struct SharedLimit(PageLimit);

impl SharedLimit {
    pub fn new(limit: PageLimit) -> Self {
        Self(PageLimit { events: limit.events.max(1), bytes: limit.bytes.max(1) })
    }

    /// The limit of the next page. `None` if there is no room for another one.
    pub fn next_page(&self) -> Option<PageLimit> {
        (0 < self.0.events && 0 < self.0.bytes).then_some(self.0)
    }

    /// Subtracts a page.
    pub fn take(&mut self, page: &[Event]) {
        self.0.events = self.0.events.saturating_sub(page.len());
        self.0.bytes = self.0.bytes.saturating_sub(page.iter().map(weight).sum());
    }
}

/// How much an event counts against [`PageLimit::bytes`]: its text and its raw lines.
fn weight(event: &Event) -> usize {
    event.body.text_bytes() + event.raw.as_ref().map_or(0, Bytes::len)
}
