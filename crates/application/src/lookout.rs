//! Looks now and then whether the bells have rung for everything that is committed.
//!
//! Whoever commits rings. Should that ever fail to happen, readers would wait beside events that are there; so what the
//! store holds is held against what the bells have told, for the agents that are followed, however many follow each.

use std::sync::Arc;

use crate::core::Core;

/// Looks every `limits.look_again` until the server goes down.
pub(crate) async fn look_out(core: Arc<Core>) {
    loop {
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = tokio::time::sleep(core.limits.look_again) => {}
        }
        for agent in core.tails.followed() {
            let head = match core.outside.agents.get(agent).await {
                Ok(found) => found.map(|found| found.head),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot check the store");
                    break;
                }
            };
            // No tail is held while the store takes its time: its last reader may leave. What is committed just now, and
            // rings in a moment, may be told twice: readers go by the number.
            if let (Some(head), Some(tail)) = (head, core.tails.get(agent)) {
                tail.raise(head);
            }
        }
    }
}
