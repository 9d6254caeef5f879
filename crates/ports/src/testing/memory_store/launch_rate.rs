//! How many launches the nodes of the memory store may do.

use std::time::Duration;

use tokio::time::Instant;

use crate::LaunchCount;

/// A bucket that holds the launches of one minute.
#[derive(Default)]
pub(super) struct LaunchRate(Option<(f64, Instant)>);

impl LaunchRate {
    pub(super) fn count(&mut self, per_minute: u32) -> LaunchCount {
        let (now, most) = (Instant::now(), f64::from(per_minute.max(1)));
        let (tokens, filled_at) = self.0.unwrap_or((most, now));
        let tokens = (tokens + (now - filled_at).as_secs_f64() * most / 60.0).min(most);
        let is_counted = 1.0 <= tokens;
        self.0 = Some((if is_counted { tokens - 1.0 } else { tokens }, now));
        if is_counted {
            return LaunchCount::Counted;
        }
        LaunchCount::TooMany { wait: Duration::from_secs_f64((1.0 - tokens) * 60.0 / most) }
    }
}
