//! Timers of connections, and the turns that connections take.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _};
use tokio::task::yield_now;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

/// Ticks once in each period, and first after one period. A late tick delays those after it.
pub(crate) fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Without this, the first tick would come at once.
    interval.reset();
    interval
}

/// Waits until the deadline; forever if there is none.
pub(crate) async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Yields to other connections after every `turn_bytes` bytes. Otherwise, a client that reads as fast as frames are
/// produced would occupy its worker until there are none left.
pub(crate) fn in_turns(
    frames: impl Stream<Item = io::Result<Bytes>> + 'static,
    turn_bytes: usize,
) -> impl Stream<Item = io::Result<Bytes>> + 'static {
    let mut given = 0;
    frames.then(move |bytes| {
        given += bytes.as_ref().map_or(0, Bytes::len);
        let is_over = turn_bytes <= given;
        if is_over {
            given = 0;
        }
        async move {
            if is_over {
                yield_now().await;
            }
            bytes
        }
    })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn whoever_takes_all_at_once_lets_others_have_their_turn() {
        let frames = stream::iter(vec![Bytes::from_static(b"1234"); 4]).map(Ok);
        let mut frames = std::pin::pin!(in_turns(frames, 8));
        let mut taken = || frames.next().now_or_never().map(|frame| frame.is_some());
        assert_eq!((taken(), taken()), (Some(true), None), "the second one is over the bound");
        assert_eq!((taken(), taken(), taken()), (Some(true), Some(true), None), "nothing is lost");
        assert_eq!((taken(), taken()), (Some(true), Some(false)));
    }
}
