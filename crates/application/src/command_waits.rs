//! What the command of a client waits for, and for how long.

use tokenrail_ports::StoreError;
use tokio::time::{Instant, timeout_at};

use crate::core::Core;
use crate::task_handle::{QueueGuard, TaskHandle};

impl Core {
    /// When the waits that begin now must end. Waits that share a deadline take no longer together than one of them.
    pub(crate) fn command_deadline(&self) -> Instant {
        Instant::now() + self.limits.commands.command_timeout
    }

    /// Locks an agent's queue for a client's command. The agent's task may hold the lock while it saves, and it
    /// retries while the store fails. So a client gets an error at the deadline instead of waiting until the store
    /// works again.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Busy`]: nothing was done.
    pub(crate) async fn lock_queue<'a>(
        &self,
        handle: &'a TaskHandle,
        deadline: Instant,
    ) -> Result<QueueGuard<'a>, StoreError> {
        match timeout_at(deadline, handle.queue.lock()).await {
            Ok(queue) => Ok(queue),
            Err(_) if self.is_disk_full() => Err(StoreError::Full),
            Err(_) => Err(StoreError::Busy),
        }
    }
}
