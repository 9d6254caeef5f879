//! The agents that one connection follows.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt as _, pending};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokenrail_application::{Follower, LifecycleEvent, Next, StoreError, StreamEnd};
use tokenrail_domain::{AgentId, Timestamp};

use crate::error::{Code, Problem};
use crate::vocabularies::native::{PageFrames, Teller};

/// The agents that one connection follows. Each follower waits in a future of its own that can be dropped.
pub(crate) struct Subscriptions {
    waiting: FuturesUnordered<Abortable<BoxFuture<'static, Waited>>>,
    /// Boxed: a node of the map has room for eleven, and most connections follow one agent.
    known: BTreeMap<AgentId, Box<Subscription>>,
    /// How many bytes of updates were taken in a row: see [`UPDATE_BYTES`].
    update_bytes: usize,
}

struct Subscription {
    teller: Teller,
    /// The sequence number up to which events were passed to the connection.
    given: u64,
    /// When the agent was deleted. The client receives this after the agent's last event.
    deleted: Option<Timestamp>,
    abort: AbortHandle,
}

struct Waited {
    follower: Follower,
    next: Result<Next, StoreError>,
}

/// An update about one of the agents.
#[derive(Debug)]
pub(crate) enum Update {
    /// Its next frames. They are empty if the dialect shows none of the new events.
    Page(PageFrames),
    /// The agent is no longer followed.
    End {
        agent: AgentId,
        end: StreamEnd,
        /// When the agent was deleted, if that is known.
        deleted: Option<Timestamp>,
    },
    /// The agent's history cannot be read. The agent is no longer followed.
    Broken {
        agent: AgentId,
        error: StoreError,
        /// When the agent was deleted, if that is known.
        deleted: Option<Timestamp>,
    },
}

/// After so many bytes of updates in a row, everything else that a connection waits for is checked too: at most sixteen
/// updates, or one page of the history.
const UPDATE_BYTES: usize = 8 << 10;

/// An update counts as this many bytes, even if the dialect shows none of its events.
const LEAST_BYTES: usize = 512;

impl Update {
    /// How much it counts, in bytes: what the connection sends for it, but at least [`LEAST_BYTES`].
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Page(frames) => frames.bytes().max(LEAST_BYTES),
            Self::End { .. } | Self::Broken { .. } => LEAST_BYTES,
        }
    }
}

impl Default for Subscriptions {
    fn default() -> Self {
        let waiting = FuturesUnordered::new();
        // `FuturesUnordered` wakes its own task if it has polled as many futures as it holds. With one more, which
        // never wakes, that does not happen.
        let (_, registration) = AbortHandle::new_pair();
        waiting.push(Abortable::new(pending().boxed(), registration));
        Self { waiting, known: BTreeMap::new(), update_bytes: 0 }
    }
}

impl Subscriptions {
    /// The agents that are followed.
    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.known.keys().copied()
    }

    /// Checks that the agent may be followed. One that is already followed always may.
    ///
    /// # Errors
    /// [`Problem`] if the connection already follows `agents_max` agents.
    pub(crate) fn check_room(&self, agent: AgentId, agents_max: usize) -> Result<(), Problem> {
        if self.known.len() < agents_max || self.known.contains_key(&agent) {
            return Ok(());
        }
        Err(Problem::new(
            Code::CapacityExhausted,
            "this connection already follows limits.subscriptions_per_connection agents; unsubscribe from one, or \
             open another connection",
        ))
    }

    /// Follows an agent. If it is already followed, the new cursor replaces the old one. `deleted`: when the agent was
    /// deleted, if it was.
    pub(crate) fn insert(&mut self, follower: Follower, teller: Teller, deleted: Option<Timestamp>) {
        let (agent, given) = (follower.agent(), follower.cursor().max(teller.after()).0);
        let deleted = self.remove(agent).or(deleted);
        let abort = self.push(follower);
        self.known.insert(agent, Box::new(Subscription { teller, given, deleted, abort }));
    }

    /// Stops following an agent. Returns when the agent was deleted, if that is known.
    pub(crate) fn remove(&mut self, agent: AgentId) -> Option<Timestamp> {
        let gone = self.known.remove(&agent)?;
        gone.abort.abort();
        gone.deleted
    }

    /// Notes the deletion of a followed agent. Returns true if the client receives it after the agent's last event.
    pub(crate) fn tells_later(&mut self, event: &LifecycleEvent) -> bool {
        let LifecycleEvent::Deleted { agent, at } = event else { return false };
        let followed = self.known.get_mut(agent);
        followed.map(|subscription| subscription.deleted = Some(*at)).is_some()
    }

    /// For each agent, the sequence number up to which its events were passed to the connection.
    pub(crate) fn heads(&self) -> BTreeMap<AgentId, u64> {
        self.known.iter().map(|(agent, subscription)| (*agent, subscription.given)).collect()
    }

    /// Takes an update that is there already. `None` also after [`UPDATE_BYTES`] in a row, until
    /// [`Subscriptions::note_all_checked`]. Nearly every wake-up of a connection is for an update.
    pub(crate) async fn take_ready(&mut self) -> Option<Update> {
        if UPDATE_BYTES <= self.update_bytes {
            return None;
        }
        match poll_fn(|cx| Poll::Ready(self.poll_next(cx))).await {
            Poll::Ready(update) => {
                self.update_bytes += update.bytes();
                Some(update)
            }
            Poll::Pending => None,
        }
    }

    /// Notes that the connection now checks everything that it waits for.
    pub(crate) fn note_all_checked(&mut self) {
        self.update_bytes = 0;
    }

    /// The next update about one of the agents. Pending forever if none is followed. `Connection::next_wake`
    /// (`connection.rs`) polls it.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Update> {
        loop {
            match ready!(self.waiting.poll_next_unpin(cx)) {
                Some(Ok(waited)) => {
                    if let Some(update) = self.update_of(waited) {
                        return Poll::Ready(update);
                    }
                }
                Some(Err(Aborted)) => {}
                None => return Poll::Pending,
            }
        }
    }

    fn update_of(&mut self, Waited { follower, next }: Waited) -> Option<Update> {
        let (agent, given) = (follower.agent(), follower.cursor().0);
        match next {
            Ok(Next::Page(page)) => {
                let subscription = self.known.get_mut(&agent)?;
                subscription.given = given.max(subscription.given);
                let frames = subscription.teller.tell(&page);
                let abort = self.push(follower);
                self.known.get_mut(&agent)?.abort = abort;
                Some(Update::Page(frames))
            }
            Ok(Next::End(end)) => {
                let deleted = self.known.remove(&agent).and_then(|gone| gone.deleted);
                Some(Update::End { agent, end, deleted })
            }
            Err(error) => {
                let deleted = self.known.remove(&agent).and_then(|gone| gone.deleted);
                Some(Update::Broken { agent, error, deleted })
            }
        }
    }

    /// Adds the wait for the follower's next page.
    fn push(&mut self, mut follower: Follower) -> AbortHandle {
        let waited = async move {
            let next = follower.next().await;
            Waited { follower, next }
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.waiting.push(Abortable::new(waited.boxed(), registration));
        abort
    }
}
