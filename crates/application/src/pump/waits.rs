//! The futures that the loop of a pump waits for, besides the output of its agent.

use std::future::pending;
use std::pin::Pin;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::core::Core;
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
    /// `cancel` is the token of the turn.
    pub(super) fn new(core: &Core, cancel: &CancellationToken) -> Self {
        let signals = [stop_signal(core, cancel), closing_signal(core)];
        Self { signals: signals.into_iter().collect(), timer: Box::pin(sleep_until(Instant::now())) }
    }
}

/// A signal to a pump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// The turn was cancelled, or the server shuts down and stops its agents.
    Stop,
    /// The server shuts down.
    Closing,
}

/// Waits until the turn is cancelled, or until the server shuts down and stops its agents. `Pump::carry` (`pump.rs`)
/// receives the signal. The next step is `Pump::stop_as_told` (`stop.rs`).
fn stop_signal(core: &Core, cancel: &CancellationToken) -> BoxFuture<'static, Signal> {
    let (cancelled, draining) = (cancel.clone().cancelled_owned(), core.draining.clone().cancelled_owned());
    let stop = async move {
        tokio::select! {
            biased;
            () = cancelled => {}
            () = draining => {}
        }
        Signal::Stop
    };
    stop.boxed()
}

/// Waits until the server shuts down.
fn closing_signal(core: &Core) -> BoxFuture<'static, Signal> {
    core.closing.clone().cancelled_owned().map(|()| Signal::Closing).boxed()
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

/// Waits until the deadline; forever if there is none.
pub(super) async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
