//! What connections wait for beside what they are there for.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

/// Ticks once in each period, the first time when one has passed; a late tick delays those after it.
pub(crate) fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval comes at once.
    interval.reset();
    interval
}

/// Waits until then; for ever where there is no deadline.
pub(crate) async fn deadline(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
