//! One page of messages, filled while an agent's turns are read. It holds no more than the page, because a turn can
//! have any number of messages.

use std::collections::VecDeque;
use std::io;

use super::range::Range;
use crate::vocabularies::letta::dto::LettaMessage;

/// Which messages the client wants. The names of the fields refer to the order in time.
pub(super) struct Wanted {
    /// The last message before the page.
    newer_than: Option<String>,
    /// The first message after the page.
    older_than: Option<String>,
    /// The page begins after `newer_than`. Otherwise, it ends before `older_than`.
    pub(super) forwards: bool,
    limit: usize,
    bytes: usize,
    /// The page lists the newest message first.
    newest_first: bool,
}

impl Wanted {
    /// The cursor from which the page is built.
    pub(super) fn from(&self) -> Option<&str> {
        let from = if self.forwards { &self.newer_than } else { &self.older_than };
        from.as_deref()
    }

    /// `bytes`: the approximate size of a page.
    pub(super) fn new(range: Range, bytes: usize) -> Self {
        let Range { after, before, limit, ascending } = range;
        // A page before a cursor is built from that cursor.
        let forwards = ascending != before.is_some();
        let (newer_than, older_than) = if ascending { (after, before) } else { (before, after) };
        Self { newer_than, older_than, forwards, limit, bytes, newest_first: !ascending }
    }
}

/// A page that is being filled. Turns are added in the order in which the page is built, and the messages of each turn
/// oldest first. Messages with the same id are the parts of one message and stay together. If the cursor is not found,
/// the page is empty. If an unknown cursor were ignored, the client would read the same page forever.
pub(super) struct LettaPage {
    wanted: Wanted,
    taken: Group,
    /// The messages of the current turn, if the page is built from its end.
    of_turn: Group,
    /// The cursor was found, or the client named none.
    begun: bool,
    state: State,
    /// The cursor was found in the previous message. More parts of it may follow.
    skipping: bool,
    /// The other cursor was found, so the page needs no older turn.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The page needs no more messages of this turn.
    TurnOver,
    Full,
}

/// Messages, and their approximate size in bytes.
#[derive(Default)]
struct Group {
    messages: VecDeque<(LettaMessage, usize)>,
    bytes: usize,
    /// Some messages were dropped, because newer ones fill the page.
    dropped: bool,
}

impl LettaPage {
    pub(super) fn new(wanted: Wanted) -> Self {
        let begun = wanted.from().is_none();
        let (taken, of_turn) = (Group::default(), Group::default());
        Self { wanted, taken, of_turn, begun, state: State::Open, skipping: false, ended: false }
    }

    /// Adds the next message of the turn, if the page needs it. Returns false if the page needs no more messages of
    /// this turn.
    pub(super) fn add(&mut self, message: LettaMessage) -> bool {
        if self.wanted.forwards {
            self.add_forwards(message);
        } else {
            self.add_backwards(message);
        }
        self.state == State::Open
    }

    /// Ends the current turn. Returns true if the page needs more turns.
    pub(super) fn end_of_turn(&mut self) -> bool {
        self.skipping = false;
        let of_turn = std::mem::take(&mut self.of_turn);
        let of_turn_dropped = of_turn.dropped;
        if !self.wanted.forwards && self.begun {
            let (limit, bytes) = (self.wanted.limit, self.wanted.bytes);
            for (message, size) in of_turn.messages.into_iter().rev() {
                if self.taken.is_full(limit, bytes, size) && self.taken.first_id() != Some(&message.id) {
                    self.state = State::Full;
                    break;
                }
                self.taken.bytes += size;
                self.taken.messages.push_front((message, size));
            }
            if of_turn_dropped {
                self.state = State::Full;
            }
        }
        if self.state == State::TurnOver {
            self.state = State::Open;
        }
        !self.ended && self.state == State::Open && self.taken.messages.len() < self.wanted.limit
    }

    pub(super) fn into_messages(self) -> Vec<LettaMessage> {
        let messages = self.taken.messages.into_iter().map(|(message, _)| message);
        if self.wanted.newest_first { messages.rev().collect() } else { messages.collect() }
    }

    fn add_forwards(&mut self, message: LettaMessage) {
        let id = Some(&message.id);
        if !self.begun || self.skipping {
            self.skipping = self.wanted.newer_than.as_ref() == id;
            self.begun |= self.skipping;
            if self.skipping || !self.begun {
                return;
            }
        }
        let size = size_of_json(&message);
        let full = self.taken.is_full(self.wanted.limit, self.wanted.bytes, size);
        if self.wanted.older_than.as_ref() == id || full && self.taken.last_id() != id {
            self.state = State::Full;
            return;
        }
        self.taken.push(message, size);
    }

    fn add_backwards(&mut self, message: LettaMessage) {
        let id = Some(&message.id);
        if self.wanted.older_than.as_ref() == id {
            self.begun = true;
            self.state = State::TurnOver;
            return;
        }
        if self.wanted.newer_than.as_ref() == id {
            // The page needs no message before this one, neither of this turn nor of older turns.
            (self.of_turn, self.ended) = (Group::default(), true);
            return;
        }
        let size = size_of_json(&message);
        self.of_turn.push(message, size);
        self.of_turn.keep_newest(self.wanted.limit, self.wanted.bytes);
    }
}

impl Group {
    fn push(&mut self, message: LettaMessage, size: usize) {
        self.bytes += size;
        self.messages.push_back((message, size));
    }

    /// Whether one more message of `size` bytes does not fit. The first message always fits.
    fn is_full(&self, limit: usize, bytes: usize, size: usize) -> bool {
        limit <= self.messages.len() || bytes < self.bytes + size && !self.messages.is_empty()
    }

    /// Drops the oldest messages while the newer ones fill a page.
    fn keep_newest(&mut self, limit: usize, bytes: usize) {
        while let Some((first, _)) = self.messages.front() {
            let parts = self.messages.iter().take_while(|(message, _)| message.id == first.id);
            let (count, size) = parts.fold((0, 0), |(count, size), (_, more)| (count + 1, size + more));
            let rest = self.messages.len() - count;
            let fills = limit <= rest || bytes < self.bytes && 0 < rest;
            if !fills {
                return;
            }
            self.messages.drain(..count);
            self.bytes -= size;
            self.dropped = true;
        }
    }

    fn first_id(&self) -> Option<&String> {
        self.messages.front().map(|(message, _)| &message.id)
    }

    fn last_id(&self) -> Option<&String> {
        self.messages.back().map(|(message, _)| &message.id)
    }
}

/// The size of a message as JSON, in bytes.
fn size_of_json(message: &LettaMessage) -> usize {
    let mut counted = Counted(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counted, message);
    counted.0
}

struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
