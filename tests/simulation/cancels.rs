//! What must have happened to the turns that were open when a cancel was accepted.

use std::collections::BTreeMap;

use tokenrail_domain::{AgentId, TurnNumber, TurnOutcome, TurnState};

use crate::bounds::{trouble_ms, trouble_of_end_ms};
use crate::commander::CancelAck;
use crate::faults::Faults;
use crate::journal::{Ledger, TurnSoFar};
use crate::process::{KILL_GRACE_MS, SWEEP_MS};
use crate::world::State;

/// The error codes of turns that the server ended without a cancel.
const STOPS: [&str; 4] = ["turn_timeout", "idle_timeout", "stream_timeout", "output_capped"];

/// An agent at the end of the simulation.
pub(crate) struct Ended<'a> {
    pub(crate) faults: &'a Faults,
    pub(crate) state: &'a State,
    pub(crate) ledger: &'a Ledger,
    pub(crate) agent: AgentId,
    /// The run of each turn.
    pub(crate) runs: &'a BTreeMap<TurnNumber, TurnNumber>,
}

impl Ended<'_> {
    /// A queued turn was never started. A running turn ended as cancelled, unless it ended by itself before it could
    /// be stopped. Both ended in time, but a turn that was withdrawn alone ends after the turns before it.
    pub(crate) fn check(&self, ack: &CancelAck) -> Result<(), String> {
        for (number, state) in &ack.open {
            let Some(turn) = self.ledger.turns.get(number) else {
                return Err(format!("G14: nothing is told of turn {number}, which was cancelled"));
            };
            match state {
                TurnState::Queued => self.waited(*number, turn)?,
                TurnState::Running => self.ran(*number, turn, ack)?,
                TurnState::Ended(_) => {}
            }
            if !ack.is_withdrawal {
                self.in_time(*number, turn, ack)?;
            }
        }
        Ok(())
    }

    fn waited(&self, number: TurnNumber, turn: &TurnSoFar) -> Result<(), String> {
        if self.state.processes.contains_key(&(self.agent, number)) {
            return Err(format!("G14: turn {number} was cancelled while it waited, and was begun"));
        }
        match turn.outcome {
            Some(TurnOutcome::Cancelled) => Ok(()),
            outcome => Err(format!("G14: turn {number} was cancelled while it waited, and is {outcome:?}")),
        }
    }

    fn ran(&self, number: TurnNumber, turn: &TurnSoFar, ack: &CancelAck) -> Result<(), String> {
        let code = turn.code.as_deref().unwrap_or_default();
        if turn.outcome == Some(TurnOutcome::Cancelled) || self.came_first(number, code, ack) {
            return Ok(());
        }
        Err(format!("G14: turn {number} was cancelled, and is {:?} {code}", turn.outcome))
    }

    /// Whether something else ended a turn before its cancel could: the agent itself, a crash, or a timer.
    fn came_first(&self, number: TurnNumber, code: &str, ack: &CancelAck) -> bool {
        let Some(run) = self.runs.get(&number) else { return false };
        let key = (self.agent, *run);
        let missed = self.state.missed.get(&key).is_some_and(|at| *at <= ack.acknowledged_ms);
        let Some(process) = self.state.processes.get(&key) else {
            return missed || code == "program_missing";
        };
        // The agent continues until it is asked to stop, and then has its grace periods.
        let asked_ms = ack.acknowledged_ms + trouble_ms(self.faults);
        let stopped = STOPS.contains(&code) && process.stopped_ms.is_some_and(|at| at <= asked_ms);
        let index = self.runs.iter().filter(|(other, of)| *of == run && **other < number).count();
        missed
            || stopped
            || process.was_gone(ack.acknowledged_ms)
            || process.ended_by_itself(index, asked_ms + KILL_GRACE_MS)
    }

    fn in_time(&self, number: TurnNumber, turn: &TurnSoFar, ack: &CancelAck) -> Result<(), String> {
        let run = self.runs.get(&number).and_then(|run| self.state.processes.get(&(self.agent, *run)));
        let Some(ended_ms) = turn.ended_ms.filter(|_| run.is_none_or(|process| !process.unread)) else {
            return Ok(());
        };
        let most = ack.acknowledged_ms + KILL_GRACE_MS + SWEEP_MS + trouble_of_end_ms(self.faults);
        match ended_ms.checked_sub(most).filter(|late| 0 < *late) {
            Some(late) => {
                Err(format!("G15: turn {number} was cancelled, and its end was told {late} ms late"))
            }
            None => Ok(()),
        }
    }
}
