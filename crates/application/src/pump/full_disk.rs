//! A run whose output fills the disk: the journal gets the room that the output takes.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_ports::{SpoolRoom, TurnStep};

use super::{Pump, conclude};
use crate::core::SaveError;
use crate::verdict::{Stop, Verdict, is_storage_full};

impl Pump {
    /// Ends a turn whose output still does not fit after the run has given its room back. The output that could not be
    /// saved is left out, and the error gives its size.
    pub(super) async fn end_without_room(&mut self) -> Result<(), SaveError> {
        let end = if let Some(end) = self.ended.take() {
            end
        } else {
            self.stop.get_or_insert(Stop::FullDisk);
            self.until_gone().await
        };
        // The end of a turn is small, so from here on it waits for room without a bound.
        self.full_since = Arc::default();
        self.saving_to = None;
        self.settling.clear();
        let now = self.core.now();
        let unsaved = self.recorder.abandon_since(&self.saved_to, now);
        tracing::warn!(agent = %self.agent, unsaved, "the disk is full: the turn ends without what could not be saved");
        let lost = end.error.as_ref().filter(|error| is_storage_full(error));
        conclude(&mut self.recorder, Verdict::without_room(lost, unsaved), now);
        self.step = TurnStep::End;
        self.flush(None).await?;
        self.leave(&end).await;
        Ok(())
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
    /// saved if there is room in time. An agent that still runs after `limits.full_disk_wait` is ended first.
    pub(super) async fn give_back(&mut self) {
        let Some(full_for) = self.full_since.elapsed() else { return };
        let waited = self.core.limits.full_disk_wait <= full_for;
        match self.run.give_back(waited).await {
            Ok(SpoolRoom::Held) if waited && self.stop.is_none() => {
                tracing::warn!(agent = %self.agent, "the disk is full: the agent is ended, so that its room can be given back");
                self.stop(Stop::FullDisk).await;
            }
            Ok(SpoolRoom::Held) => {}
            Ok(SpoolRoom::GivenBack | SpoolRoom::None) => {
                self.gave_back = true;
                // Output that was read may use that room. It waits as long again, in case somebody makes more.
                let limits = &self.core.limits;
                self.full_since.bound(full_for + limits.full_disk_wait + limits.retry_pause_max);
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "the room of a run cannot be given back");
            }
        }
    }
}
