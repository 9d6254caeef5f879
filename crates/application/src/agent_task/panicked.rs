//! Cleans up after a panic of an agent's task. A panic is a bug of the server, and must not leave an agent running
//! for ever.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokenrail_domain::{Turn, TurnNumber, TurnState};
use tokenrail_ports::{Adoption, RunOutput};

use super::{AgentTask, order};
use crate::core::SaveError;
use crate::stats::Counters;
use crate::verdict::Verdict;

/// What the cleanup found after a panic.
enum Found {
    /// The turn of the task. It has been ended.
    Turn,
    /// No turn, and the task was not poked meanwhile. It is retired.
    Nothing,
    /// No turn, but the task was poked meanwhile: there may be a new one.
    NewTurns,
    /// The agent was purged.
    Purged,
}

/// The state of a task after the cleanup.
pub(crate) enum Cleaned {
    /// It can continue.
    Continues,
    /// It is retired. The agent may have another task already.
    Retired,
    /// It cannot continue, and must be retired.
    Ends,
}

impl AgentTask {
    /// Ends the turn whose task panicked.
    pub(crate) async fn clean_up(&self) -> Cleaned {
        self.tell();
        self.handle.close_channels();
        let mut broken = None;
        // If the run itself is the cause, the turn is ended without it.
        for with_run in [true, false, false] {
            match AssertUnwindSafe(self.end_broken(with_run, &mut broken)).catch_unwind().await {
                Ok(Ok(Found::Turn | Found::NewTurns)) => return Cleaned::Continues,
                Ok(Ok(Found::Nothing)) => return Cleaned::Retired,
                Ok(Ok(Found::Purged) | Err(SaveError::Closing | SaveError::LetGo)) => return Cleaned::Ends,
                Ok(Err(SaveError::Refused(error))) => {
                    // An append that was under way during the panic may have been saved since, so the next try reads
                    // the journal again.
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(agent = %self.agent, error, "cannot end a turn whose task panicked");
                }
                Err(_) => self.tell(),
            }
        }
        Cleaned::Ends
    }

    async fn end_broken(&self, with_run: bool, broken: &mut Option<TurnNumber>) -> Result<Found, SaveError> {
        let pokes = self.handle.pokes();
        let turn = match self.first_open_turn().await? {
            Some(turn) if *broken.get_or_insert(turn.number) == turn.number => turn,
            None if broken.is_none() => {
                // In one step: a turn that is queued after this gets a task of its own.
                let is_retired = self.core.retire(self.agent, &self.tail, pokes);
                return Ok(if is_retired { Found::Nothing } else { Found::NewTurns });
            }
            // The turn has ended already.
            _ => return Ok(Found::Turn),
        };
        let verdict = Verdict::internal();
        if turn.state == TurnState::Queued {
            self.end_unstarted(turn, verdict).await?;
            return Ok(Found::Turn);
        }
        let Some(agent) = self.agent_row().await? else { return Ok(Found::Purged) };
        if with_run {
            self.stop_run(&turn).await?;
        }
        let so_far = self.so_far(&turn).await?;
        self.end(self.recorder(&agent, &turn, so_far).await?, verdict).await?;
        Ok(Found::Turn)
    }

    /// Ends what is left of the turn's run without reading its output. Its spool stays until the next start, so that
    /// the cause of the panic can be found.
    async fn stop_run(&self, turn: &Turn) -> Result<(), SaveError> {
        let Some(agent) = self.agent_row().await? else { return Ok(()) };
        let Some(kind) = self.agent_type(&agent) else { return Ok(()) };
        let Ok(Adoption::Run(mut run)) = kind.runner.adopt(&order(&agent, turn), turn.spool_offset).await
        else {
            self.end_run(turn).await;
            return Ok(());
        };
        if let Err(error) = run.cancel().await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(agent = %self.agent, error, "cannot stop the agent");
            return Ok(());
        }
        loop {
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Err(SaveError::Closing),
                output = run.next() => match output {
                    Ok(RunOutput::Lines(_) | RunOutput::Progress { .. }) => {}
                    Ok(RunOutput::Ended(_)) | Err(_) => return Ok(()),
                },
            }
        }
    }

    /// The message of the panic is not logged: it may contain text of users. The panic hook of the server logs the
    /// place.
    fn tell(&self) {
        Counters::add(&self.core.counters.invariant_violations, 1);
        tracing::error!(agent = %self.agent, "an agent's task panicked: ending its turn");
    }
}
