//! What a connection waits for besides its client, its agents and its timers.

use futures_util::future::{FutureExt as _, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::sync::Arc;
use tokenrail_application::{AgentService, KeptLifecycleEvent, LifecycleEventsMissed, LifecycleReader};

/// Waits that seldom end. Registering one takes a lock that all connections share. So each is registered once, and not
/// again for each event of an agent; while none has ended, a poll costs next to nothing.
pub(super) struct Signals(FuturesUnordered<LocalBoxFuture<'static, Ended>>);

/// What has happened.
pub(super) enum Signal {
    Closing,
    Lifecycle(Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>),
}

/// A wait that has ended.
enum Ended {
    Closing,
    Lifecycle(LifecycleReader, Result<Arc<KeptLifecycleEvent>, LifecycleEventsMissed>),
}

impl Signals {
    pub(super) fn of(service: &AgentService) -> Self {
        let closing = service.closing().cancelled_owned().map(|()| Ended::Closing);
        Self([closing.boxed_local(), next_event(service.lifecycle_events())].into_iter().collect())
    }

    /// The next signal. May be dropped at any await.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.next().await {
            Some(Ended::Lifecycle(reader, event)) => {
                self.0.push(next_event(reader));
                Signal::Lifecycle(event)
            }
            Some(Ended::Closing) | None => Signal::Closing,
        }
    }
}

fn next_event(mut reader: LifecycleReader) -> LocalBoxFuture<'static, Ended> {
    let next = async move {
        match reader.next().await {
            Some(event) => Ended::Lifecycle(reader, event),
            // The lifecycle events end only when the service closes.
            None => Ended::Closing,
        }
    };
    next.boxed_local()
}
