//! Repeats what was acknowledged, one after the other.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokenrail_domain::{AgentId, Sequence};
use tokenrail_ports::StoreError;
use tokio::time::timeout;

use super::kept::KeptEntry;
use super::{Healer, Outcome, Progress};
use crate::postgres::command::Redone;
use crate::postgres::database::failures::ChangeFailure;
use crate::postgres::database::link::Link;
use crate::postgres::error::{QueryFailure, is_of_the_server};
use crate::postgres::statements::agents;
use crate::postgres::statements::append::save_again;
use crate::postgres::statements::journal::FetchLimit;

/// How often a change is repeated if another one was faster, or the server chose it to break a deadlock.
const TRIES: u32 = 3;

impl Healer {
    /// Repeats these entries in their order, and notes how far it has come, because it may not come to its end. What
    /// cannot be repeated yet holds up only what follows it of the same agent.
    pub(super) async fn repeat_all(
        &self,
        link: &Link,
        entries: Vec<(u64, KeptEntry)>,
        progress: &mut Progress,
    ) -> Result<(), ChangeFailure> {
        let there = self.those_that_are_there(link, &entries).await?;
        let (all, mut repeated, mut lost) = (entries.len(), 0, 0);
        for (number, entry) in entries {
            let outcome = match &entry {
                _ if there.contains(&number) => Outcome::There,
                entry if !progress.is_last && progress.later.holds_up(entry) => Outcome::Later(Vec::new()),
                entry => self.repeat(link, entry).await?,
            };
            match outcome {
                Outcome::There => {}
                Outcome::Repeated => repeated += 1,
                Outcome::Lost => lost += 1,
                Outcome::Later(missing) => progress.later.add(number, entry, missing),
            }
            progress.number = number;
        }
        self.repeated.fetch_add(repeated, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        let later = progress.later.entries.len();
        if 0 < lost {
            tracing::error!(
                all,
                repeated,
                later,
                lost,
                "the failover of the database lost changes that could not be saved again (the field `lost` says how \
                 many); use a synchronous standby"
            );
        } else {
            tracing::warn!(
                all,
                repeated,
                later,
                "the server has checked the changes from just before the failover; the field `repeated` says how many \
                 were lost and have been saved again, and `later` how many must wait for other nodes first"
            );
        }
        Ok(())
    }

    /// The numbers of appends that need not be looked at one by one: of each agent, those before the newest one that
    /// its journal reaches. An older journal of the same agent can only be a beginning of it.
    async fn those_that_are_there(
        &self,
        link: &Link,
        entries: &[(u64, KeptEntry)],
    ) -> Result<HashSet<u64>, ChangeFailure> {
        let appends = || {
            entries.iter().filter_map(|(number, entry)| match entry {
                KeptEntry::Append(append) => Some((*number, append)),
                KeptEntry::Change(_) => None,
            })
        };
        let agents: HashSet<AgentId> = appends().map(|(_, append)| append.agent()).collect();
        let agents: Vec<AgentId> = agents.into_iter().collect();
        let standings = self.read(link, agents::standings(link, &agents)).await?;
        let heads: HashMap<AgentId, Sequence> =
            standings.into_iter().map(|standing| (standing.agent, standing.head)).collect();
        let (mut there, mut newest) = (HashSet::new(), HashMap::new());
        for (number, append) in appends() {
            let reached = heads.get(&append.agent()).is_some_and(|head| append.last() <= Some(*head));
            if reached && let Some(before) = newest.insert(append.agent(), number) {
                there.insert(before);
            }
        }
        Ok(there)
    }

    async fn repeat(&self, link: &Link, entry: &KeptEntry) -> Result<Outcome, ChangeFailure> {
        let limits = &self.connector.limits;
        let wait = Duration::from_millis(limits.answer_timeout_ms);
        let fetch = FetchLimit { rows: limits.fetch_rows, bytes: limits.fetch_bytes };
        let mut tries = 1;
        loop {
            let done = match entry {
                KeptEntry::Append(append) => save_again(link, append, wait, fetch).await,
                KeptEntry::Change(change) => link.change(wait, change.redo(link)).await,
            };
            let failure = match done {
                Ok(Redone::There) => return Ok(Outcome::There),
                Ok(Redone::Again) => return Ok(Outcome::Repeated),
                Ok(Redone::Awaits(missing)) => return Ok(Outcome::Later(missing)),
                Err(ChangeFailure::NotSaved(failure)) => failure,
                Err(unknown) => return Err(unknown),
            };
            if failure.is_worth_another_try() && tries < TRIES {
                tries += 1;
                continue;
            }
            if may_be_over_later(&failure) {
                return Err(ChangeFailure::NotSaved(failure));
            }
            if self.is_purged(link, &failure).await? {
                return Ok(Outcome::There);
            }
            if builds_on_others(entry, &failure) {
                return Ok(Outcome::Later(entry.agent().into_iter().collect()));
            }
            let error = &failure as &dyn std::error::Error;
            tracing::error!(
                error,
                "the failover of the database has lost a change that cannot be saved again"
            );
            return Ok(Outcome::Lost);
        }
    }

    /// Whether the change is one of an agent that was purged later.
    async fn is_purged(&self, link: &Link, failure: &QueryFailure) -> Result<bool, ChangeFailure> {
        let QueryFailure::Refused(StoreError::UnknownAgent(agent)) = failure else { return Ok(false) };
        self.read(link, agents::is_purged(link, *agent)).await
    }

    /// Reads. Nothing else is done on new connections meanwhile, so it must not wait for ever.
    pub(super) async fn read<T>(
        &self,
        link: &Link,
        read: impl Future<Output = Result<T, QueryFailure>>,
    ) -> Result<T, ChangeFailure> {
        let wait = Duration::from_millis(self.connector.limits.read_timeout_ms);
        let read =
            timeout(wait, link.read(read)).await.unwrap_or_else(|_| Err(QueryFailure::unanswered(wait)));
        read.map_err(ChangeFailure::NotSaved)
    }
}

/// Whether something is missing that another node may still repeat: the agent, or events before these. Or something is
/// there that should have ended, such as an agent with the same conversation.
fn builds_on_others(entry: &KeptEntry, failure: &QueryFailure) -> bool {
    match (entry, failure) {
        (_, QueryFailure::Refused(StoreError::UnknownAgent(_))) => true,
        (KeptEntry::Append(append), QueryFailure::Refused(StoreError::Conflict { head })) => {
            append.first().is_some_and(|first| head.next() < first)
        }
        (KeptEntry::Change(change), QueryFailure::Refused(StoreError::Conflict { .. })) => {
            change.is_new_agent()
        }
        _ => false,
    }
}

fn may_be_over_later(failure: &QueryFailure) -> bool {
    match failure {
        QueryFailure::Refused(error) => error.is_transient(),
        QueryFailure::Failed(error) => is_of_the_server(error) || error.as_db_error().is_none(),
        QueryFailure::Again => true,
    }
}
