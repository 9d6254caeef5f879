//! Packs the batches of ended turns, in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;

/// The time from the end of a turn, or from the start of the server, until packing begins. Clients react to the end of
/// a turn: their requests should not wait for the compression, or for its transaction. Turns that end within this time,
/// or during the packing, are packed along with the first and have no delay of their own.
pub(crate) const PACK_DELAY: Duration = Duration::from_millis(100);

/// Packs whenever a turn has ended, until the server shuts down.
pub(crate) async fn compact(core: Arc<Core>) {
    while core.closing.run_until_cancelled(tokio::time::sleep(PACK_DELAY)).await.is_some() {
        pack_all(&core).await;
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.compaction.notified() => {}
        }
    }
}

/// Packs all turns that have ended, also those that end meanwhile.
async fn pack_all(core: &Core) {
    while !core.closing.is_cancelled() {
        match core.outside.journal.compact_next().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                // Nothing is lost: the batches stay as they are, and the end of the next turn starts another try.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot compress the events of ended turns; trying again at the end of the next turn"
                );
                return;
            }
        }
    }
}
