//! A run whose output fills the disk: the journal gets the room that the output takes.

use super::Pump;

impl Pump {
    /// Whether nothing can be saved for want of room, and the run may have some.
    ///
    /// Asked again after each pause: the disk may be full only later, or the run not have ended yet.
    pub(super) fn may_give_back(&self) -> bool {
        !self.gave_back
    }

    /// Gives back the room of a run that a full disk has ended. Its end could not be saved otherwise, and so its output,
    /// which may be what fills the disk, would never be removed.
    pub(super) async fn give_back(&mut self) {
        if !self.core.is_disk_full() {
            return;
        }
        match self.run.give_back().await {
            Ok(gave_back) => self.gave_back = gave_back,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "the room of a run cannot be given back");
            }
        }
    }
}
