//! Packs the batches of ended turns, in the background.

use std::sync::Arc;

use crate::core::Core;

/// Packs whenever a turn has ended, until the server shuts down.
pub(crate) async fn compact(core: Arc<Core>) {
    loop {
        match core.outside.journal.compact_next().await {
            Ok(true) if !core.closing.is_cancelled() => continue,
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                // Nothing is lost: the batches stay as they are, and the end of the next turn starts another try.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot compress the events of ended turns; trying again at the end of the next turn"
                );
            }
        }
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.compaction.notified() => {}
        }
    }
}
