//! Continues a turn that an earlier task of the agent began, usually before the server was restarted.

use tokenrail_domain::{Assembler, Event, EventBody, Sequence, Timestamp, Turn};
use tokenrail_ports::{Adoption, ExitStatus, RunEnd};

use super::AgentTask;
use super::order::order;
use crate::core::SaveError;
use crate::task_handle::TurnChannels;
use crate::verdict::{Stop, verdict};

/// What the journal has of a turn.
pub(super) struct SoFar {
    pub(super) assembler: Assembler,
    pub(super) message_count: u32,
    pub(super) started_at: Timestamp,
}

impl SoFar {
    pub(super) fn nothing(now: Timestamp) -> Self {
        Self { assembler: Assembler::default(), message_count: 0, started_at: now }
    }
}

impl AgentTask {
    /// Resumes the running turn. If the turn was being stopped, finishes the stop.
    pub(super) async fn resume(&self) -> Result<(), SaveError> {
        let channels = self.handle.open_channels();
        let taken_up = self.take_up(channels).await;
        self.handle.close_channels();
        taken_up
    }

    async fn take_up(&self, channels: TurnChannels) -> Result<(), SaveError> {
        // Read only now: a cancel from before `TaskHandle::open_channels` is only in the store.
        let Some((agent, turn)) = self.next_turn().await? else { return Ok(()) };
        let so_far = self.so_far(&turn).await?;
        let ran_ms = self.core.now().ms_since(so_far.started_at);
        let mut recorder = self.recorder(&agent, &turn, so_far).await?;
        self.fill_up_running(&mut recorder).await?;
        let Some(kind) = self.agent_type(&agent) else {
            return self.leave_alone(recorder, &agent, &turn, channels.cancel).await;
        };
        let end = match kind.runner.adopt(&order(&agent, &turn), turn.spool_offset).await {
            Ok(Adoption::Run(run)) => return self.pump(recorder, run, turn, channels, ran_ms).await,
            Ok(Adoption::Gone) => RunEnd { status: ExitStatus::Gone, ..RunEnd::default() },
            Err(error) => {
                // Nothing would read its further output, and the agent's next turn needs the session.
                self.end_run(&turn).await;
                RunEnd { error: Some(error.to_agent_error()), ..RunEnd::default() }
            }
        };
        let cancelled = channels.cancel.is_cancelled().then_some(Stop::Cancelled);
        let stop = turn.stop.map(Stop::of).or(cancelled);
        self.end(recorder, verdict(None, stop, &end, &self.core.limits)).await
    }

    /// Reads what the journal has of the turn.
    pub(super) async fn so_far(&self, turn: &Turn) -> Result<SoFar, SaveError> {
        let mut so_far = SoFar::nothing(turn.asked_at);
        let first = turn.first_sequence.unwrap_or(Sequence(1));
        let mut cursor = first.before();
        let limit = self.core.limits.reading.page();
        loop {
            let events: Vec<Event> =
                self.patiently(|| self.core.outside.journal.read(self.agent, cursor, limit)).await?;
            let Some(last) = events.last() else { return Ok(so_far) };
            cursor = last.sequence;
            for event in &events {
                if event.sequence == first {
                    so_far.started_at = event.at;
                }
                so_far.assembler.record(event.sequence, &event.body);
                so_far.message_count += u32::from(matches!(event.body, EventBody::Message(_)));
            }
        }
    }
}
