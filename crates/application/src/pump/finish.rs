//! The end of a run: everything is saved, with the result of the turn as the last event, and the run is left.

use std::sync::Arc;

use tokenrail_domain::EventBody;
use tokenrail_ports::{RunEnd, TurnStep};

use super::Pump;
use crate::core::SaveError;
use crate::own_notices::REAPED;
use crate::verdict::{Stop, Verdict, is_storage_full, verdict};

impl Pump {
    /// The agent has ended: saves the rest, with the result as the last event.
    pub(super) async fn finish(&mut self, end: RunEnd) -> Result<(), SaveError> {
        let end = self.end_of_run(end).await?;
        self.record_turn_end(&end);
        self.save_end_and_leave(&end).await
    }

    /// Saves the output, and returns how the run ended. An idle process is kept for the next turn, unless this turn is
    /// being stopped: then the process is ended first.
    async fn end_of_run(&mut self, end: RunEnd) -> Result<RunEnd, SaveError> {
        let must_go = end.idle && self.is_stopping();
        // Set before the flush: if the flush finds no space, `end_without_room` must not wait for an ended run.
        self.ended = (!must_go).then(|| end.clone());
        // Saved before the wait for an idle process, so that readers see the output without delay.
        self.flush().await?;
        let end = if must_go { self.until_gone().await } else { end };
        self.ended = Some(end.clone());
        Ok(end)
    }

    /// Records how the run ended, and the result of the turn.
    fn record_turn_end(&mut self, end: &RunEnd) {
        let now = self.core.now();
        if self.stopping.why.is_none() && end.disk_full.is_none() {
            // The exit code means nothing if the agent was stopped or its output may be cut.
            self.recorder.output_ended(end.status, now);
        }
        let is_cancelled = matches!(self.stopping.why, Some(Stop::Cancelled));
        // After a cancel also with 0: the journal then says that the agent left no process behind.
        if 0 < end.reaped || is_cancelled {
            let data = format!("{{\"processes\":{}}}", end.reaped);
            self.recorder.notice(REAPED, &data, now);
        }
        let has_result = self.recorder.agent_result().is_some();
        if let Some(error) = &end.error
            && (has_result || is_cancelled && is_storage_full(error))
        {
            // The agent's result or the cancel decides the outcome. The error is recorded beside it.
            self.recorder.note(EventBody::Error(Box::new(error.clone())), now);
        }
        let verdict = verdict(self.recorder.agent_result(), self.stopping.why, end, &self.core.limits)
            .classed(|| self.recorder.parser().complaint(&end.stderr));
        self.recorder.conclude(verdict, now);
    }

    /// Saves the end of the turn, which is recorded already, and leaves the run.
    async fn save_end_and_leave(&mut self, end: &RunEnd) -> Result<(), SaveError> {
        self.step = TurnStep::End;
        self.flush().await?;
        self.leave(end).await;
        Ok(())
    }

    /// Ends a turn whose output still does not fit after the run has freed its space. The output that could not be
    /// saved is left out, and the error reports its size.
    pub(super) async fn end_without_room(&mut self) -> Result<(), SaveError> {
        let end = if let Some(end) = self.ended.take() {
            end
        } else {
            self.stopping.why.get_or_insert(Stop::FullDisk);
            self.until_gone().await
        };
        // The end of a turn is small, so from here on it waits for space without a time limit.
        self.full_disk.since = Arc::default();
        let now = self.core.now();
        let unsaved = self.recorder.abandon_since(&self.saved, now);
        tracing::warn!(agent = %self.agent, unsaved, "the disk is full: ending the turn without the output that could not be saved");
        let lost = end.error.as_ref().filter(|error| is_storage_full(error));
        self.recorder.conclude(Verdict::without_room(lost, unsaved), now);
        self.save_end_and_leave(&end).await
    }

    /// Waits until everything that is recorded is saved.
    async fn flush(&mut self) -> Result<(), SaveError> {
        self.wait_until_saved().await?;
        if let Some(append) = self.take() {
            self.begin_save(append);
            self.wait_until_saved().await?;
        }
        Ok(())
    }

    /// Leaves a run whose end is saved. A cancel takes the same queue lock. If it came first, `is_stopping` is true,
    /// and the process is ended here. If it comes later, `dismiss` finds the idle process at the runner.
    async fn leave(&mut self, end: &RunEnd) {
        if end.idle {
            let handle = Arc::clone(&self.handle);
            let queue = handle.queue.lock().await;
            if !self.is_stopping() {
                return self.run.leave().await;
            }
            drop(queue);
            self.until_gone().await;
        }
        // The run of a process removes its folder now.
        self.run.leave().await;
    }
}
