//! Periodically checks that every committed event was announced.
//!
//! Each commit wakes its readers. If a wake-up were ever missing, readers would wait although there are new events.
//! So this task compares the heads in the store with the announced heads. It queries each followed agent once,
//! however many followers the agent has.

use std::sync::Arc;

use crate::core::Core;

/// Checks every [`look_again`](crate::SavingLimits::look_again) until the server shuts down.
pub(crate) async fn find_missed_announcements(core: Arc<Core>) {
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = tokio::time::sleep(core.limits.saving.look_again) => {}
        }
        for agent in core.tails.followed() {
            let head = match core.outside.agents.get(agent).await {
                Ok(found) => found.map(|found| found.head),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot read the latest sequence numbers from the database"
                    );
                    break;
                }
            };
            // No tail is held during the query, so that its last reader may leave. An event that is committed just
            // now may be announced twice. That is harmless, because readers go by the sequence number.
            if let (Some(head), Some(tail)) = (head, core.tails.get(agent)) {
                tail.raise(head);
            }
        }
    }
}
