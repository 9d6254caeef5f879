//! The agents that one connection follows.

use std::collections::BTreeMap;

use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokenrail_application::{Follower, Next, StoreError, StreamEnd};
use tokenrail_domain::{AgentId, Timestamp};

use crate::vocabularies::native::{Teller, Words};

/// The agents that one connection follows. Each follower waits in a future of its own that can be dropped.
#[derive(Default)]
pub(crate) struct Subscriptions {
    waiting: FuturesUnordered<Abortable<BoxFuture<'static, Waited>>>,
    known: BTreeMap<AgentId, Subscription>,
}

struct Subscription {
    teller: Teller,
    /// The number up to which events were given.
    given: u64,
    /// When it was deleted: told when it is followed no longer.
    deleted: Option<Timestamp>,
    abort: AbortHandle,
}

struct Waited {
    follower: Follower,
    next: Result<Next, StoreError>,
}

/// What one of the agents has to tell.
#[derive(Debug)]
pub(crate) enum Told {
    /// What follows; nothing, where none of it is told.
    Words(Words),
    /// It is followed no longer.
    End {
        agent: AgentId,
        end: StreamEnd,
        /// When it was deleted, where that was heard of already.
        deleted: Option<Timestamp>,
    },
    /// Its history cannot be read; it is followed no longer.
    Broken {
        agent: AgentId,
        error: StoreError,
        /// When it was deleted, where that was heard of already.
        deleted: Option<Timestamp>,
    },
}

impl Subscriptions {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The agents that are followed.
    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.known.keys().copied()
    }

    pub(crate) fn contains(&self, agent: AgentId) -> bool {
        self.known.contains_key(&agent)
    }

    /// Follows an agent; where it was followed already, from the new cursor and no longer from the old one.
    pub(crate) fn insert(&mut self, follower: Follower, teller: Teller) {
        let (agent, given) = (follower.agent(), follower.cursor().max(teller.after()).0);
        let deleted = self.remove(agent);
        let abort = self.wait(follower);
        self.known.insert(agent, Subscription { teller, given, deleted, abort });
    }

    /// Follows an agent no longer; gives when it was deleted, where that was heard of already.
    pub(crate) fn remove(&mut self, agent: AgentId) -> Option<Timestamp> {
        let gone = self.known.remove(&agent)?;
        gone.abort.abort();
        gone.deleted
    }

    /// Keeps until the end of a followed agent that it was deleted; false where it is not followed.
    pub(crate) fn deleted(&mut self, agent: AgentId, at: Timestamp) -> bool {
        let followed = self.known.get_mut(&agent);
        followed.map(|subscription| subscription.deleted = Some(at)).is_some()
    }

    /// For each agent, the number up to which its events were given.
    pub(crate) fn heads(&self) -> BTreeMap<AgentId, u64> {
        self.known.iter().map(|(agent, subscription)| (*agent, subscription.given)).collect()
    }

    /// Waits until one of the agents has something to tell; for ever where none is followed. May be dropped at any
    /// await.
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            match self.waiting.next().await {
                Some(Ok(waited)) => {
                    if let Some(told) = self.told(waited) {
                        return told;
                    }
                }
                Some(Err(Aborted)) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn told(&mut self, Waited { follower, next }: Waited) -> Option<Told> {
        let (agent, given) = (follower.agent(), follower.cursor().0);
        match next {
            Ok(Next::Page(page)) => {
                let subscription = self.known.get_mut(&agent)?;
                subscription.given = given.max(subscription.given);
                let words = subscription.teller.tell(&page);
                let abort = self.wait(follower);
                self.known.get_mut(&agent)?.abort = abort;
                Some(Told::Words(words))
            }
            Ok(Next::End(end)) => {
                let deleted = self.known.remove(&agent).and_then(|gone| gone.deleted);
                Some(Told::End { agent, end, deleted })
            }
            Err(error) => {
                let deleted = self.known.remove(&agent).and_then(|gone| gone.deleted);
                Some(Told::Broken { agent, error, deleted })
            }
        }
    }

    fn wait(&mut self, mut follower: Follower) -> AbortHandle {
        let waited = async move {
            let next = follower.next().await;
            Waited { follower, next }
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.waiting.push(Abortable::new(waited.boxed(), registration));
        abort
    }
}
