//! The stream of a subscription: notifications that transcripts have grown.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::stream::{self, FuturesUnordered, Stream, StreamExt};
use tokenrail_application::{AfterLastTurn, Follower, Next, Refusal, StoreError, StreamEnd};
use tokenrail_domain::AgentId;
use tokio::time::{Instant, Interval};

use super::stream::{BEAT, event_stream};
use crate::api::{Api, StreamPlace};
use crate::blocks::BlockWriter;
use crate::error::Problem;
use crate::peer::peer;
use crate::vocabularies::mcp::dto::{self, Caller, Done, Notification, Params};
use crate::waits::{every, passed};

/// The least time between two notifications about one transcript.
const UPDATE_PAUSE: Duration = Duration::from_secs(1);

/// Opens a subscription, with a place among the streams, which are limited.
pub(super) async fn open(api: &Api, request: &HttpRequest, caller: Caller, params: &Params) -> HttpResponse {
    let beginning = async {
        let agents = dto::listen(params)?;
        let place = api.open_stream(peer(request.peer_addr()))?;
        let (mut watches, news) = (Vec::new(), FuturesUnordered::new());
        for agent in agents {
            match api.service().follow(agent, None, AfterLastTurn::Wait).await {
                // Its history may be kept, but it never grows again, and nobody would say so.
                Ok((deleted, _)) if deleted.deleted_at.is_some() => {}
                Ok((_, follower)) => {
                    watches.push(Watch { agent, told: None, due: None });
                    news.push(news_of(agent, follower));
                }
                // What does not exist is not acknowledged.
                Err(Refusal::NotFound(_)) => {}
                Err(refusal) => return Err(Problem::from(refusal)),
            }
        }
        Ok((watches, news, place))
    };
    let (watches, news, place) = match beginning.await {
        Ok(begun) => begun,
        Err(problem) => return super::respond::<()>(&caller, Err(problem)),
    };
    let mut out = BlockWriter::default();
    out.unnamed(&Notification::acknowledged(&caller, watches.iter().map(|watch| watch.agent)));
    let beat = every(api.config().heartbeat);
    let first = Some(out.take());
    event_stream(blocks(Subscription { caller, watches, news, beat, first, is_over: false, _place: place }))
}

struct Subscription {
    caller: Caller,
    watches: Vec<Watch>,
    /// One for each watch. None is dropped before it is ready, so that a busy agent does not hold up the others.
    news: FuturesUnordered<News>,
    beat: Interval,
    /// What comes before anything else.
    first: Option<Bytes>,
    is_over: bool,
    _place: StreamPlace,
}

/// An agent whose transcript is watched.
struct Watch {
    agent: AgentId,
    told: Option<Instant>,
    /// When the next notification is sent. `None` if there is nothing new.
    due: Option<Instant>,
}

impl Watch {
    fn grew(&mut self) {
        let now = Instant::now();
        let earliest = self.told.map_or(now, |told| now.max(told + UPDATE_PAUSE));
        self.due.get_or_insert(earliest);
    }
}

type News = Pin<Box<dyn Future<Output = (AgentId, Follower, Result<Next, StoreError>)>>>;

/// Waits until a transcript has grown, or its agent is gone.
fn news_of(agent: AgentId, mut follower: Follower) -> News {
    Box::pin(async move {
        let next = follower.next().await;
        (agent, follower, next)
    })
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
            let (agent, follower, next) = tokio::select! {
                biased;
                () = passed(due) => return Some(self.tell()),
                Some(news) = self.news.next() => news,
                _ = self.beat.tick() => return Some(BEAT),
            };
            match next {
                Ok(Next::Page(_) | Next::End(StreamEnd::AgentEnded)) => {
                    let watches = self.watches.iter_mut();
                    watches.filter(|watch| watch.agent == agent).for_each(Watch::grew);
                    self.news.push(news_of(agent, follower));
                }
                Ok(Next::End(StreamEnd::AgentDeleted)) => {
                    self.watches.retain(|watch| watch.agent != agent);
                    let mut out = BlockWriter::default();
                    out.unnamed(&Notification::updated(&self.caller, agent));
                    return Some(out.take());
                }
                // The client subscribes again, and reads what it has missed.
                Ok(Next::End(StreamEnd::ShuttingDown)) => return Some(self.end()),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(%agent, error, "a subscription ends because a journal cannot be read");
                    return Some(self.end());
                }
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
