//! The end of a turn, and the turns that an agent begins by itself.

use tokenrail_domain::{AgentError, EventBody, MessageOutcome, Timestamp, Turn, TurnNumber, TurnOutcome};
use tokenrail_ports::{Append, TurnStep};

use super::{Recorded, Recorder};
use crate::own_notices::TURN_BEGAN;
use crate::verdict::Verdict;

impl Recorder {
    /// Ends the turn with this verdict. An error that the agent has not reported itself becomes an event of its own.
    pub(crate) fn conclude(&mut self, verdict: Verdict, now: Timestamp) {
        let Verdict { outcome, error, say } = verdict;
        if let Some(error) = error.clone().filter(|_| say) {
            self.note(EventBody::Error(Box::new(error)), now);
        }
        self.end(outcome, error, now);
    }

    /// Ends the turn: completes its open messages, and closes it with a result.
    pub(crate) fn end(&mut self, outcome: TurnOutcome, error: Option<AgentError>, now: Timestamp) {
        let open: Vec<_> = self.assembler.open_messages().collect();
        for message in open {
            let outcome = MessageOutcome::of_open_message(outcome);
            if let Some(complete) = self.assembler.complete(message, outcome) {
                self.note(EventBody::Message(Box::new(complete)), now);
            }
        }
        let result = self.turn.result(outcome, error, now);
        self.note(EventBody::TurnResult(Box::new(result)), now);
    }

    /// Ends the turn with this verdict, and takes the pending events.
    pub(crate) fn take_end(&mut self, verdict: Verdict, now: Timestamp) -> Option<Append> {
        self.conclude(verdict, now);
        self.take(TurnStep::End)
    }

    /// Begins a turn that the agent has begun by itself, and takes the pending events: those of the line, up to the
    /// beginning of yet another turn.
    pub(crate) fn take_own_turn(
        &mut self,
        turn: Turn,
        end_offset: u64,
        now: Timestamp,
    ) -> (Option<Append>, Recorded) {
        let recorded = self.begin_own_turn(turn.number, end_offset, now);
        if self.pending_events() == 0 {
            // Without an event, nothing would be saved, and another turn could take the number.
            self.notice(TURN_BEGAN, "{}", now);
        }
        (self.take(TurnStep::Start(Box::new(turn))), recorded)
    }

    /// Begins the next turn, after the end of the previous one. Records the rest of the line that began it, up to the
    /// beginning of yet another turn.
    pub(crate) fn begin_own_turn(&mut self, turn: TurnNumber, end_offset: u64, now: Timestamp) -> Recorded {
        self.turn.number = turn;
        self.turn.started_at = now;
        self.turn.message_count = 0;
        self.pending.joined_lines(&self.rest.raw);
        self.rest.raw.clear();
        let mut said = std::mem::take(&mut self.rest.said);
        self.hear(&mut said, true, end_offset, now)
    }
}
