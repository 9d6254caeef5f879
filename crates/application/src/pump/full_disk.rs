//! A run whose output fills the disk: the journal gets the room that the output takes.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::{RunEnd, SpoolRoom, StoreError, TurnStep};

use super::{Pump, conclude};
use crate::core::SaveError;
use crate::recorder::Mark;
use crate::verdict::{Stop, Verdict, is_storage_full};

impl Pump {
    /// Saves the end of the turn, with the messages that are still open. If the disk has no room for them, also after the
    /// run has given its room back, the turn ends without them.
    pub(super) async fn save_end(&mut self, mark: Mark, end: &RunEnd) -> Result<(), SaveError> {
        let limits = &self.core.limits;
        // As long again as until the run has given its room back.
        self.full_since.bound(limits.full_disk_wait * 2 + limits.retry_pause_max);
        self.step = TurnStep::End;
        match self.flush(None).await {
            Err(SaveError::Refused(StoreError::Full)) => {}
            saved => return saved,
        }
        tracing::warn!(agent = %self.agent, "the disk is full: the turn ends without the messages that are open");
        self.full_since = Arc::default();
        let now = self.core.now();
        self.recorder.abandon_since(mark, now);
        let verdict = Verdict::without_room(end.error.as_ref().filter(|error| is_storage_full(error)));
        conclude(&mut self.recorder, verdict, now);
        self.step = TurnStep::End;
        self.flush(None).await
    }

    /// Whether the run may have room to give back.
    ///
    /// Asked again after each pause: the disk may be full only later, or the run not have ended yet.
    pub(super) fn may_give_back(&self) -> bool {
        !self.gave_back
    }

    /// How long it takes until it is asked again.
    pub(super) fn full_disk_pause(&self) -> Duration {
        let limits = &self.core.limits;
        limits.full_disk_wait.min(limits.retry_pause_max).max(limits.retry_pause)
    }

    /// Gives back the room of a run whose output cannot be saved for want of room. Its end could not be saved otherwise,
    /// and so its output, which may be what fills the disk, would never be removed. What has been read waits here, and is
    /// saved when there is room. An agent that still runs after `limits.full_disk_wait` is ended first.
    pub(super) async fn give_back(&mut self) {
        let Some(full_for) = self.full_since.elapsed() else { return };
        let waited = self.core.limits.full_disk_wait <= full_for;
        match self.run.give_back(waited).await {
            Ok(SpoolRoom::Held) if waited && self.stop.is_none() => {
                tracing::warn!(agent = %self.agent, "the disk is full: the agent is ended, so that its room can be given back");
                self.stop(Stop::FullDisk).await;
            }
            Ok(SpoolRoom::Held) => {}
            Ok(SpoolRoom::GivenBack | SpoolRoom::None) => self.gave_back = true,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "the room of a run cannot be given back");
            }
        }
    }
}
