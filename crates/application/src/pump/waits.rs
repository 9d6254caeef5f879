//! What a pump waits for besides its agent: created once per run, and not again for each line.

use std::future::pending;
use std::pin::Pin;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, Sleep, sleep_until};

use super::stop::Signal;
use crate::timers::Expired;

/// What a pump waits for besides its agent. Registering a wait takes a lock that all agents share. So each wait is
/// registered once per run, not once per line.
pub(super) struct Waits {
    /// Returns each signal once. While none has come, a poll costs next to nothing.
    pub(super) signals: FuturesUnordered<BoxFuture<'static, Signal>>,
    /// For [`expiry`].
    pub(super) timer: Pin<Box<Sleep>>,
}

impl Waits {
    pub(super) fn new(signals: [BoxFuture<'static, Signal>; 2]) -> Self {
        Self { signals: signals.into_iter().collect(), timer: Box::pin(sleep_until(Instant::now())) }
    }
}

/// Waits until the deadline. Most deadlines move forward with each line. The timer is then left as it is, and reset
/// only when it fires.
pub(super) async fn expiry(timer: &mut Pin<Box<Sleep>>, deadline: Option<(Instant, Expired)>) -> Expired {
    let Some((at, expired)) = deadline else { return pending().await };
    while Instant::now() < at {
        if timer.is_elapsed() || at < timer.deadline() {
            timer.as_mut().reset(at);
        }
        timer.as_mut().await;
    }
    expired
}
