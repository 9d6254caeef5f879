//! Packs the batches of ended turns, in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;

/// How long it waits after the end of a turn. Clients react to that end: their requests must not wait for the
/// compression, or for its transaction.
pub(crate) const CALM: Duration = Duration::from_millis(100);

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
        if core.pause(CALM).await.is_none() {
            return;
        }
    }
}
