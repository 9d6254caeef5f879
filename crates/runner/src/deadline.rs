//! Deadlines that may be absent.

use tokio::time::{Instant, sleep_until};

/// Waits until the deadline; forever if there is none.
pub(crate) async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
