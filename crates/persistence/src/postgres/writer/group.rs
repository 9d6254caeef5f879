//! Saves the appends of a group, and finds out what became of them.
//!
//! If the outcome of a statement is unknown, the connection is closed, and the very same appends are sent again on a
//! new one. The old statement may still run, or run later: it moves nothing, because it no longer follows the head. No
//! cancel request is sent.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::postgres::config::PostgresLimits;
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure, UnknownCause};
use crate::postgres::database::link::Link;
use crate::postgres::database::settings::Purpose;
use crate::postgres::error::{QueryFailure, is_of_the_server, not_saved};
use crate::postgres::failover::Healer;
use crate::postgres::known_agents::KnownAgents;
use crate::postgres::statements::append::{self, PreparedAppend, move_heads, save_alone};
use crate::postgres::statements::journal::{FetchLimit, agent_keys};

/// Number of times that the same appends are sent. After that, their callers get an unknown outcome, and send them
/// again.
const TRIES: u32 = 2;

/// Saves one group after the other.
pub(super) struct GroupWriter {
    limits: PostgresLimits,
    healer: Arc<Healer>,
    known: Arc<KnownAgents>,
    /// `None` after an outcome was unknown: the next statement opens a new connection.
    link: Option<Link>,
    /// Why no connection could be opened for this group. Its other appends need not try.
    down: Option<Arc<ConnectFailure>>,
}

/// An append whose caller waits for the answer.
pub(super) struct WaitingAppend {
    pub(super) prepared: PreparedAppend,
    pub(super) reply: oneshot::Sender<Result<(), StoreError>>,
}

impl WaitingAppend {
    fn answer(self, answer: Result<(), StoreError>) {
        // The caller may be gone. The change stands.
        let _gone = self.reply.send(answer);
    }

    /// It was saved on this timeline. It is kept for the case that a failover loses it.
    fn acknowledge(self, healer: &Healer, timeline: u32) {
        let Self { prepared, reply } = self;
        let kept = healer.keep_append(timeline, prepared);
        let _gone = reply.send(kept.map_err(|superseded| StoreError::OutcomeUnknown(Box::new(superseded))));
    }
}

/// What a try of several appends came to.
enum Together {
    /// Those that were not saved by it must be looked at alone.
    Saved(HashSet<AgentId>),
    /// Nothing is saved, because of one of them.
    Spoilt,
    /// Nothing is saved, for a reason that concerns all of them.
    NotSaved(Arc<tokio_postgres::Error>),
    Again,
    Unknown(UnknownCause),
}

impl GroupWriter {
    pub(super) fn new(limits: &PostgresLimits, healer: Arc<Healer>, known: Arc<KnownAgents>) -> Self {
        Self { limits: limits.clone(), healer, known, link: None, down: None }
    }

    pub(super) fn limits(&self) -> &PostgresLimits {
        &self.limits
    }

    /// Saves the appends, each of another agent, and answers their callers.
    pub(super) async fn save(&mut self, group: Vec<WaitingAppend>) {
        self.down = None;
        let (together, mut alone): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|waiting| waiting.prepared.goes_with_others());
        if !together.is_empty() {
            alone.extend(self.save_together(together).await);
        }
        for waiting in alone {
            match self.save_one(&waiting.prepared).await {
                Ok(timeline) => waiting.acknowledge(&self.healer, timeline),
                Err(error) => waiting.answer(Err(error)),
            }
        }
    }

    /// Saves appends in one statement, and answers their callers. Returns those that must go alone.
    async fn save_together(&mut self, waiting: Vec<WaitingAppend>) -> Vec<WaitingAppend> {
        let mut unknown = None;
        for _ in 0..TRIES {
            let link = match self.link().await {
                Ok(link) => link,
                Err(error) => {
                    answer_all(waiting, || unreachable(&error, unknown.is_some()));
                    return Vec::new();
                }
            };
            let begun = Instant::now();
            let tried = self.try_together(&link, &waiting).await;
            self.healer.figures().count(waiting.len(), begun);
            match tried {
                Together::Saved(saved) => {
                    let (done, others): (Vec<_>, Vec<_>) =
                        waiting.into_iter().partition(|waiting| saved.contains(&waiting.prepared.agent()));
                    for waiting in done {
                        waiting.acknowledge(&self.healer, link.timeline());
                    }
                    return others;
                }
                Together::Spoilt => return waiting,
                Together::NotSaved(error) => {
                    answer_all(waiting, || not_saved(&error));
                    return Vec::new();
                }
                Together::Again => {}
                Together::Unknown(cause) => {
                    self.healer.figures().count_unknown();
                    self.link = None;
                    unknown = Some(Arc::new(cause));
                }
            }
        }
        match unknown {
            Some(cause) => answer_all(waiting, || StoreError::OutcomeUnknown(Box::new(Arc::clone(&cause)))),
            None => answer_all(waiting, || StoreError::Busy),
        }
        Vec::new()
    }

    async fn try_together(&self, link: &Link, waiting: &[WaitingAppend]) -> Together {
        let wait = Duration::from_millis(self.limits().answer_timeout_ms);
        let keys = match timeout(wait, self.keys_of(link, waiting)).await {
            Ok(Ok(keys)) => keys,
            Ok(Err(QueryFailure::Failed(error))) if is_of_the_server(&error) => {
                return Together::NotSaved(Arc::new(error));
            }
            Ok(Err(QueryFailure::Failed(error))) => return Together::Unknown(UnknownCause::Broken(error)),
            Ok(Err(QueryFailure::Refused(_) | QueryFailure::Again)) => return Together::Spoilt,
            Err(_) => return Together::Unknown(UnknownCause::TimedOut(wait)),
        };
        let appends: Vec<(i64, &PreparedAppend)> =
            keys.iter().filter_map(|(key, at)| Some((*key, &waiting.get(*at)?.prepared))).collect();
        if appends.is_empty() {
            return Together::Saved(HashSet::new());
        }
        match link.save(move_heads(link, &appends)).await {
            Ok(moved) => {
                let moved: HashSet<i64> = moved.into_iter().collect();
                let (saved, others): (Vec<_>, Vec<_>) =
                    appends.into_iter().partition(|(key, _)| moved.contains(key));
                for (_, prepared) in others {
                    self.known.forget(prepared.agent());
                }
                Together::Saved(saved.into_iter().map(|(_, prepared)| prepared.agent()).collect())
            }
            Err(ChangeFailure::Unknown(cause)) => Together::Unknown(cause),
            Err(ChangeFailure::NotSaved(failure)) if failure.is_worth_another_try() => Together::Again,
            Err(ChangeFailure::NotSaved(QueryFailure::Failed(error))) if is_of_the_server(&error) => {
                Together::NotSaved(Arc::new(error))
            }
            Err(ChangeFailure::NotSaved(_)) => Together::Spoilt,
        }
    }

    /// The keys of the agents, in order, with the places of their appends. Unknown agents are left out.
    async fn keys_of(
        &self,
        link: &Link,
        waiting: &[WaitingAppend],
    ) -> Result<Vec<(i64, usize)>, QueryFailure> {
        let agents = || waiting.iter().map(|waiting| waiting.prepared.agent());
        let new: Vec<AgentId> =
            agents().filter(|id| self.known.get(link.timeline(), *id).is_none()).collect();
        if !new.is_empty() {
            for (id, key) in agent_keys(link, &new).await? {
                self.known.add(link.timeline(), id, key);
            }
        }
        let mut keys: Vec<(i64, usize)> = (0..)
            .zip(agents())
            .filter_map(|(at, id)| Some((self.known.get(link.timeline(), id)?, at)))
            .collect();
        keys.sort_unstable();
        Ok(keys)
    }

    /// Saves one append in a transaction of its own. Returns the timeline on which it is saved.
    async fn save_one(&mut self, prepared: &PreparedAppend) -> Result<u32, StoreError> {
        let limits = self.limits();
        let wait = Duration::from_millis(limits.answer_timeout_ms);
        let fetch = FetchLimit { rows: limits.fetch_rows, bytes: limits.fetch_bytes };
        let mut unknown = None;
        for _ in 0..TRIES {
            let link = self.link().await.map_err(|error| unreachable(&error, unknown.is_some()))?;
            if let Err(busy) = self.healer.refuse_incomplete(prepared.agent()) {
                return Err(if unknown.is_some() {
                    StoreError::OutcomeUnknown(Box::new(busy))
                } else {
                    busy
                });
            }
            let begun = Instant::now();
            let saved = save_alone(&link, prepared, wait, fetch).await;
            self.healer.figures().count(1, begun);
            match saved {
                Ok(()) => return Ok(link.timeline()),
                Err(ChangeFailure::NotSaved(failure)) if failure.is_worth_another_try() => {}
                Err(ChangeFailure::NotSaved(failure)) => {
                    let error = failure.before_commit();
                    // What an earlier try did is still unknown.
                    let stays_unknown = unknown.is_some() && error.is_transient();
                    return Err(if stays_unknown {
                        StoreError::OutcomeUnknown(Box::new(error))
                    } else {
                        error
                    });
                }
                Err(ChangeFailure::Unknown(cause)) => {
                    self.healer.figures().count_unknown();
                    self.link = None;
                    unknown = Some(cause);
                }
            }
        }
        Err(unknown.map_or(StoreError::Busy, |cause| StoreError::OutcomeUnknown(Box::new(cause))))
    }

    /// The connection, opened if there is none.
    async fn link(&mut self) -> Result<Link, Arc<ConnectFailure>> {
        if let Some(link) = self.link.as_ref().filter(|link| link.is_usable()) {
            return Ok(link.clone());
        }
        if let Some(failure) = &self.down {
            return Err(Arc::clone(failure));
        }
        match self.healer.connect(Purpose::Writer, &append::statements()).await {
            Ok(link) => Ok(self.link.insert(link).clone()),
            Err(failure) => Err(Arc::clone(self.down.insert(Arc::new(failure)))),
        }
    }
}

fn answer_all(waiting: Vec<WaitingAppend>, error: impl Fn() -> StoreError) {
    for waiting in waiting {
        waiting.answer(Err(error()));
    }
}

/// The error if there is no connection: after a try whose outcome is unknown, it stays unknown.
fn unreachable(failure: &Arc<ConnectFailure>, after_a_try: bool) -> StoreError {
    match &**failure {
        _ if after_a_try => StoreError::OutcomeUnknown(Box::new(Arc::clone(failure))),
        ConnectFailure::WrongServer(wrong) => StoreError::WrongServer(Box::new(wrong.clone())),
        _ => StoreError::Unreachable(Box::new(Arc::clone(failure))),
    }
}
