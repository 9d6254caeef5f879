//! A run whose output fills the disk: the journal gets the space that the output takes.

use std::sync::Arc;

use tokenrail_ports::{SpaceWait, SpoolRoom};

use super::Pump;
use crate::full_since::FullSince;
use crate::verdict::Stop;

/// The state of a full disk, for one run.
#[derive(Default)]
pub(super) struct FullDisk {
    /// The run has freed the space of its output, or its output takes none.
    has_freed: bool,
    pub(super) since: Arc<FullSince>,
}

impl Pump {
    /// Whether the run may have space to free.
    ///
    /// Checked again after each pause, because the disk may fill up later, or the run may end later.
    pub(super) fn may_free_spool(&self) -> bool {
        !self.full_disk.has_freed
    }

    /// Frees the space of a run whose output cannot be saved because the disk is full. Otherwise the end of the run
    /// could not be saved, so its output, which may be what fills the disk, would never be removed. The output that
    /// was read already stays in memory, and is saved if there is space in time. An agent that still runs after
    /// `limits.full_disk_wait_s` is ended first.
    pub(super) async fn free_spool(&mut self) {
        let Some(full_for) = self.full_disk.since.elapsed() else { return };
        let is_over = self.core.limits.saving.full_disk_wait <= full_for;
        let wait = if is_over { SpaceWait::Over } else { SpaceWait::Continues };
        match self.run.free_spool(wait).await {
            Ok(SpoolRoom::Held) if is_over && self.stopping.why.is_none() => {
                tracing::warn!(agent = %self.agent, "the disk is full: terminating the agent to free the space of its output");
                self.stop(Stop::FullDisk).await;
            }
            Ok(SpoolRoom::Held) => {}
            Ok(SpoolRoom::Freed | SpoolRoom::None) => {
                self.full_disk.has_freed = true;
                // The output in memory may use the freed space. It waits for about `limits.full_disk_wait_s` again,
                // in case more space becomes free.
                let limits = &self.core.limits.saving;
                self.full_disk.since.bound(full_for + limits.full_disk_wait + limits.full_disk_pause());
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(agent = %self.agent, error, "cannot free the space of a run's output");
            }
        }
    }
}
