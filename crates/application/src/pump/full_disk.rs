//! A run whose output fills the disk: the journal gets the room that the output takes.

use tokenrail_ports::SpoolRoom;

use super::Pump;
use crate::verdict::Stop;

impl Pump {
    /// Whether the run may have room to give back.
    ///
    /// Asked again after each pause: the disk may be full only later, or the run not have ended yet.
    pub(super) fn may_give_back(&self) -> bool {
        !self.gave_back
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
