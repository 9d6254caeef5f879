//! Rolls a recorder back, if recorded events cannot be saved.

use tokenrail_domain::{Assembler, EventBody, MessageOrdinal, Sequence, Timestamp};
use tokenrail_ports::OutputLine;

use super::Recorder;
use super::turn::RecordedTurn;

/// A state to which a [`Recorder`] can be rolled back.
pub(crate) struct Mark {
    turn: RecordedTurn,
    next: Sequence,
    open: Vec<MessageOrdinal>,
    /// The recorded events accounted for the output up to here.
    accounted: u64,
}

impl Recorder {
    /// What the journal will contain once every append taken so far is saved. Call this only if no pending event
    /// belongs to a message.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            turn: RecordedTurn { agent_result: None, ..self.turn.clone() },
            next: self.pending.first().unwrap_or(self.next),
            open: self.assembler.open_messages().collect(),
            accounted: self.offsets.accounted,
        }
    }

    /// Leaves out this line of output and all output before it.
    pub(crate) fn leave_out(&mut self, line: &OutputLine) {
        self.offsets.leave_out(line.end_offset);
    }

    /// Rolls back to a mark. Nothing recorded since then was saved, and nothing of it ever will be. The messages that
    /// were open at the mark are abandoned. Returns how many bytes of output are lost.
    pub(crate) fn abandon_since(&mut self, mark: &Mark, now: Timestamp) -> u64 {
        self.pending.clear();
        self.requests.forget_unsaved();
        self.turn = mark.turn.clone();
        self.next = mark.next;
        self.assembler = Assembler::default();
        for message in &mark.open {
            self.note(EventBody::Abandoned { message: *message }, now);
        }
        self.offsets.taken_in.saturating_sub(mark.accounted)
    }
}
