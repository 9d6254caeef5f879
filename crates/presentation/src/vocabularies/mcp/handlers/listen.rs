//! The stream of a subscription: notifications that transcripts have grown.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::future::select_all;
use futures_util::stream::{self, Stream};
use tokenrail_application::{Follower, Next, Refusal, StoreError, StreamEnd};
use tokenrail_domain::AgentId;
use tokio::time::{Instant, Interval};

use super::stream::{BEAT, event_stream};
use crate::api::{Api, StreamPlace};
use crate::blocks::BlockWriter;
use crate::error::Problem;
use crate::peer::peer;
use crate::vocabularies::mcp::dto::{self, Caller, Done, Notification, Params};
use crate::waits::{deadline, every};

/// The least time between two notifications about one transcript.
const UPDATE_PAUSE: Duration = Duration::from_secs(1);

/// Opens a subscription, with a place among the streams, which are limited.
pub(super) async fn open(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let beginning = async {
        let agents = dto::listen(params)?;
        let place = api.open_stream(peer(request.peer_addr()))?;
        let mut watches = Vec::new();
        for agent in agents {
            match api.service().follow(agent, None, true).await {
                Ok((_, follower)) => watches.push(Watch { agent, follower, told: None, due: None }),
                // What does not exist is not acknowledged.
                Err(Refusal::NotFound(_) | Refusal::Deleted) => {}
                Err(refusal) => return Err(Problem::from(refusal)),
            }
        }
        Ok((watches, place))
    };
    let (watches, place) = match beginning.await {
        Ok(begun) => begun,
        Err(problem) => return super::respond::<()>(&caller, Err(problem)),
    };
    let mut out = BlockWriter::default();
    out.unnamed(&Notification::acknowledged(&caller, watches.iter().map(|watch| watch.agent)));
    let beat = every(api.config().heartbeat);
    let first = Some(out.take());
    event_stream(blocks(Subscription { caller, watches, beat, first, is_over: false, _place: place }))
}

struct Subscription {
    caller: Caller,
    watches: Vec<Watch>,
    beat: Interval,
    /// What comes before anything else.
    first: Option<Bytes>,
    is_over: bool,
    _place: StreamPlace,
}

/// An agent whose transcript is watched.
struct Watch {
    agent: AgentId,
    follower: Follower,
    told: Option<Instant>,
    /// When the client is told that there is more. `None` if there is not.
    due: Option<Instant>,
}

impl Watch {
    fn grew(&mut self) {
        let now = Instant::now();
        let earliest = self.told.map_or(now, |told| now.max(told + UPDATE_PAUSE));
        self.due.get_or_insert(earliest);
    }
}

/// Waits until a transcript has grown, or an agent is gone.
async fn next_of(watches: &mut [Watch]) -> (usize, Result<Next, StoreError>) {
    let followers = watches.iter_mut().map(|watch| Box::pin(watch.follower.next()));
    let (next, index, _) = select_all(followers).await;
    (index, next)
}

fn blocks(subscription: Subscription) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(subscription, |mut subscription| async move {
        let bytes = subscription.next().await?;
        Some((Ok(bytes), subscription))
    })
}

impl Subscription {
    /// The next bytes. `None` after the end of the subscription.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.is_over {
            return None;
        }
        loop {
            // A subscription about nothing ends at once.
            if self.watches.is_empty() {
                return Some(self.end());
            }
            let due = self.watches.iter().filter_map(|watch| watch.due).min();
            let (index, next) = tokio::select! {
                biased;
                () = deadline(due) => return Some(self.tell()),
                next = next_of(&mut self.watches) => next,
                _ = self.beat.tick() => return Some(BEAT),
            };
            match next {
                Ok(Next::Page(_) | Next::End(StreamEnd::AgentEnded)) => {
                    if let Some(watch) = self.watches.get_mut(index) {
                        watch.grew();
                    }
                }
                Ok(Next::End(StreamEnd::AgentDeleted)) => {
                    let gone = self.watches.swap_remove(index);
                    let mut out = BlockWriter::default();
                    out.unnamed(&Notification::updated(&self.caller, gone.agent));
                    return Some(out.take());
                }
                // The client subscribes again, and reads what it has missed.
                Ok(Next::End(StreamEnd::ShuttingDown)) | Err(_) => return Some(self.end()),
            }
        }
    }

    /// Tells what is due.
    fn tell(&mut self) -> Bytes {
        let (now, mut out) = (Instant::now(), BlockWriter::default());
        for watch in &mut self.watches {
            if watch.due.is_some_and(|due| due <= now) {
                (watch.due, watch.told) = (None, Some(now));
                out.unnamed(&Notification::updated(&self.caller, watch.agent));
            }
        }
        out.take()
    }

    fn end(&mut self) -> Bytes {
        self.is_over = true;
        let mut out = BlockWriter::default();
        out.unnamed(&Done::unsubscribed(&self.caller));
        out.take()
    }
}
