//! The way back of a recorder, where what it has recorded cannot be saved.

use tokenrail_domain::{Assembler, EventBody, MessageOrdinal, Sequence, Timestamp, TurnNumber};
use tokenrail_ports::OutputLine;

use super::Recorder;

/// A place to which a [`Recorder`] can go back.
pub(crate) struct Mark {
    turn: TurnNumber,
    started_at: Timestamp,
    next: Sequence,
    message_count: u32,
    open: Vec<MessageOrdinal>,
    /// Output up to here was accounted for.
    offset: u64,
}

impl Recorder {
    /// Where the journal is when all that was taken so far is saved. What is pending does not belong to a message.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            turn: self.turn,
            started_at: self.started_at,
            next: self.pending.first().map_or(self.next, |event| event.sequence),
            message_count: self.message_count,
            open: self.assembler.open_messages().collect(),
            offset: self.offset,
        }
    }

    /// Leaves out this line of output and all before it.
    pub(crate) fn leave_out(&mut self, line: &OutputLine) {
        self.read = self.read.max(line.end_offset);
    }

    /// Goes back to where the journal is: what came after the mark was not saved, and is not going to be. The messages
    /// that were open then are abandoned. Gives how many bytes of the output that leaves out.
    pub(crate) fn abandon_since(&mut self, mark: &Mark, now: Timestamp) -> u64 {
        self.pending.clear();
        self.raw.clear();
        self.raw_ends.clear();
        (self.text_bytes, self.line_waits, self.close) = (0, false, None);
        (self.turn, self.started_at) = (mark.turn, mark.started_at);
        (self.next, self.message_count) = (mark.next, mark.message_count);
        self.assembler = Assembler::default();
        for message in &mark.open {
            self.note(EventBody::Abandoned { message: *message }, now);
        }
        self.read.saturating_sub(mark.offset)
    }
}
