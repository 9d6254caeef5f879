//! What a pump waits for besides its agent: created once per run, and not again for each line.

use std::future::pending;
use std::pin::Pin;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Pump;
use crate::core::Core;
use crate::timers::Expired;

/// What a pump waits for besides its agent. Starting such a wait takes locks that all agents share, so one wait
/// continues while lines arrive and are saved.
pub(super) struct Waits {
    /// Returns each signal once. While none has come, a poll costs next to nothing.
    pub(super) signals: FuturesUnordered<BoxFuture<'static, Signal>>,
    /// For [`expiry`].
    pub(super) timer: Pin<Box<Sleep>>,
}

/// A signal to a pump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// The turn was cancelled, or the server shuts down and stops its agents.
    Stop,
    /// The server shuts down.
    Close,
}

impl Waits {
    pub(super) fn new(core: &Core, cancel: &CancellationToken) -> Self {
        let (cancelled, draining) =
            (cancel.clone().cancelled_owned(), core.draining.clone().cancelled_owned());
        let stop = async move {
            tokio::select! {
                biased;
                () = cancelled => {}
                () = draining => {}
            }
            Signal::Stop
        };
        let close = core.closing.clone().cancelled_owned().map(|()| Signal::Close);
        Self {
            signals: [stop.boxed(), close.boxed()].into_iter().collect(),
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }
}

impl Pump {
    /// Until when the next batch is delayed so that it grows, because followers are the bottleneck. `None` if it is
    /// due.
    pub(super) fn put_off(&self) -> Option<Instant> {
        let limits = &self.core.limits;
        let pending = self.recorder.pending_events();
        if pending == 0 || !self.has_room() {
            return None;
        }
        let at_most = limits.saving.follower_wait;
        let until = self.tail.audience.wants_until(pending, limits.saving.follower_wait_from, at_most);
        until.filter(|until| Instant::now() < *until)
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
