//! The turns that an agent begins by itself, after the result of the turn before.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Timestamp, Turn, TurnNumber, TurnState};
use tokenrail_ports::{Append, RunEnd};
use tokio::time::Instant;

use super::Pump;
use crate::core::{Core, SaveError};
use crate::recorder::Recorded;
use crate::verdict::{Stop, Verdict, verdict};

impl Pump {
    /// The agent has closed its turn and begun one by itself. One line can do that several times. The whole line is
    /// saved in one transaction, so the run always belongs to a turn, and no line counts as read while a part of it
    /// is missing.
    pub(super) async fn begin_own_turns(&mut self, end_offset: u64, now: Timestamp) -> Result<(), SaveError> {
        self.release();
        self.wait_until_saved().await?;
        // The lock keeps new turns out of the queue between the choice of a number and its use. And a cancel finds
        // either the turn that ends or the one that begins.
        let handle = Arc::clone(&self.handle);
        let _queue = handle.queue.lock().await;
        if self.stopping.why.is_none() && self.cancel.is_cancelled() {
            self.carry_out(Stop::Cancelled).await;
        }
        let mut number = free_number(&self.core, self.agent, self.recorder.turn()).await?;
        let mut appends = Vec::new();
        let mut recorded = Recorded::OwnTurn;
        while recorded == Recorded::OwnTurn {
            let verdict = self.verdict_of_turn();
            appends.extend(self.recorder.take_end(verdict, now));
            let turn = self.own_turn(number, now);
            number = number.next();
            let (began, after) = self.recorder.take_own_turn(turn, end_offset, now);
            appends.extend(began);
            recorded = after;
        }
        if let Some(appends) = Append::chain(appends) {
            self.begin_save(appends);
            self.wait_until_saved().await?;
        }
        // The pump did not read the output meanwhile, so the agent was not silent.
        let now = Instant::now();
        (self.times.started, self.times.last_output, self.times.result_at) = (now, now, None);
        Ok(())
    }

    fn verdict_of_turn(&self) -> Verdict {
        verdict(self.recorder.agent_result(), self.stopping.why, &RunEnd::default(), &self.core.limits)
    }

    /// A turn that the agent has begun by itself. It runs in the process of the turn before, and what stops that
    /// process stops this turn too.
    fn own_turn(&self, number: TurnNumber, now: Timestamp) -> Turn {
        Turn {
            number,
            prompt: String::new(),
            images: Vec::new(),
            state: TurnState::Running,
            asked_at: now,
            first_sequence: Some(self.recorder.next_sequence()),
            last_sequence: None,
            stop: self.stopping.why.and_then(Stop::reason),
            base: None,
            ..self.first_turn.clone()
        }
    }
}

/// A turn number that is not taken.
async fn free_number(core: &Core, agent: AgentId, newest: TurnNumber) -> Result<TurnNumber, SaveError> {
    let mut pause = core.limits.saving.retry_pause;
    loop {
        match core.outside.agents.last_turn(agent).await {
            Ok(last) => return Ok(last.max(newest).next()),
            Err(error) if error.is_transient() => {
                pause = core.pause(pause).await.ok_or(SaveError::Closing)?;
            }
            Err(error) => return Err(SaveError::Refused(error)),
        }
    }
}
