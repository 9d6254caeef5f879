//! The buffer between two appends.

use std::mem;

use bytes::BytesMut;
use tokenrail_domain::{Event, Sequence};

/// The events that wait for their commit, and the raw lines that they came from.
#[derive(Default)]
pub(super) struct Pending {
    events: Vec<Event>,
    /// The raw lines of all pending events, one after the other, followed by those of the next event. They are copied
    /// here, so that no event keeps the reader's whole buffer in memory.
    raw: BytesMut,
    /// Where the raw lines of each pending event end in `raw`.
    raw_ends: Vec<usize>,
    /// Bytes of text in the pending events.
    text_bytes: usize,
    /// A line was read since the last event. It waits for the next event, even if it is empty.
    line_waits: bool,
}

impl Pending {
    /// Adds a line, which goes with the next event.
    pub(super) fn line(&mut self, line: &[u8]) {
        if mem::replace(&mut self.line_waits, true) {
            self.raw.extend_from_slice(b"\n");
        }
        self.raw.extend_from_slice(line);
    }

    /// Adds lines that are joined already.
    pub(super) fn joined_lines(&mut self, lines: &[u8]) {
        self.raw.extend_from_slice(lines);
    }

    /// Removes the raw bytes after the first `length` bytes, unless an event has them. Returns whether they were
    /// removed.
    pub(super) fn take_back(&mut self, length: usize) -> bool {
        let is_free = self.attached_bytes() <= length;
        if is_free {
            self.raw.truncate(length);
        }
        is_free
    }

    pub(super) fn push(&mut self, event: Event) {
        self.line_waits = false;
        self.raw_ends.push(self.raw.len());
        self.text_bytes += event.body.text_bytes();
        self.events.push(event);
    }

    /// Takes the events, each with its raw lines. Lines without an event stay.
    pub(super) fn take(&mut self) -> Vec<Event> {
        let capacity = self.events.len();
        let mut events = mem::replace(&mut self.events, Vec::with_capacity(capacity));
        let mut raw = self.raw.split_to(self.attached_bytes()).freeze();
        let mut begin = 0;
        for (event, end) in events.iter_mut().zip(self.raw_ends.drain(..)) {
            event.raw = (begin < end).then(|| raw.split_to(end - begin));
            begin = end;
        }
        self.text_bytes = 0;
        events
    }

    /// Drops all events and lines.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.raw.clear();
        self.raw_ends.clear();
        (self.text_bytes, self.line_waits) = (0, false);
    }

    pub(super) fn first(&self) -> Option<Sequence> {
        self.events.first().map(|event| event.sequence)
    }

    pub(super) fn events(&self) -> usize {
        self.events.len()
    }

    /// About how many bytes wait for their commit.
    pub(super) fn bytes(&self) -> usize {
        self.raw.len() + self.text_bytes + self.events.len() * size_of::<Event>()
    }

    /// Bytes of all raw lines.
    pub(super) fn raw_bytes(&self) -> usize {
        self.raw.len()
    }

    /// Bytes of raw lines that wait for an event.
    pub(super) fn unshown_bytes(&self) -> usize {
        self.raw.len() - self.attached_bytes()
    }

    fn attached_bytes(&self) -> usize {
        self.raw_ends.last().copied().unwrap_or(0)
    }
}
