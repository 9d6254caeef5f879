//! What builds on something that another node has not repeated yet: such as a message for an agent that another node
//! has created in the lost moments.
//!
//! It is repeated again and again, as long as other nodes that are alive still repeat something. Until then, nobody may
//! conclude anything about its agents from what the database lacks: the store is busy for them. All other agents go on.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::AgentId;
use tokenrail_ports::StoreError;
use tokio::time::sleep;

use super::kept::KeptEntry;
use super::{Healer, Progress};
use crate::postgres::database::failures::{ChangeFailure, ConnectFailure};
use crate::postgres::database::link::Link;
use crate::postgres::statements::catch_up;

/// Entries that are to be repeated again, in their order.
#[derive(Default)]
pub(super) struct Later {
    pub(super) entries: Vec<(u64, KeptEntry)>,
    /// The agents of which something is missing.
    agents: HashSet<AgentId>,
}

impl Later {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn add(&mut self, number: u64, entry: KeptEntry, missing: Vec<AgentId>) {
        self.entries.push((number, entry));
        self.agents.extend(missing);
    }

    /// Whether an entry must wait because an earlier one of the same agent does.
    pub(super) fn holds_up(&self, entry: &KeptEntry) -> bool {
        entry.agent().is_some_and(|agent| self.agents.contains(&agent))
    }
}

/// The agents of which something is missing.
#[derive(Default)]
pub(super) struct Awaited {
    /// Whether anything is to be repeated again. Mostly there is nothing.
    any: AtomicBool,
    agents: Mutex<HashSet<AgentId>>,
}

impl Awaited {
    pub(super) fn set(&self, later: &Later) {
        let mut agents = self.agents();
        agents.clone_from(&later.agents);
        self.any.store(!later.is_empty(), Ordering::Release);
    }

    fn contains(&self, agent: AgentId) -> bool {
        self.any.load(Ordering::Acquire) && self.agents().contains(&agent)
    }

    fn agents(&self) -> MutexGuard<'_, HashSet<AgentId>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Healer {
    /// Refuses an agent of which something is missing that another node may still repeat.
    ///
    /// # Errors
    /// [`StoreError::Busy`] then.
    pub(crate) fn refuse_incomplete(&self, agent: AgentId) -> Result<(), StoreError> {
        if self.awaited.contains(agent) { Err(StoreError::Busy) } else { Ok(()) }
    }

    /// The timeline on which this node has repeated everything.
    pub(crate) fn healed(&self) -> u32 {
        if self.awaited.any.load(Ordering::Acquire) { 0 } else { self.healed.load(Ordering::Acquire) }
    }

    /// Tells the other nodes.
    pub(super) async fn note_healed(&self, link: &Link) -> Result<(), ChangeFailure> {
        match self.membership.joined() {
            Some(node) => link.save(catch_up::note_healed(link, node)).await,
            None => Ok(()),
        }
    }

    pub(super) fn begin_rounds(&self, timeline: u32) {
        let me = self.me.clone();
        let pause = Duration::from_millis(self.connector.limits.catch_up_pause_ms);
        self.connector.runtime.spawn(async move {
            loop {
                sleep(pause).await;
                // A store that was closed repeats nothing any more.
                let Some(healer) = me.upgrade() else { return };
                match healer.round(timeline).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            error,
                            "cannot restore the changes that were lost in the failover of the database; retrying"
                        );
                    }
                }
            }
        });
    }

    /// Returns whether nothing is left, or another failover begins all of it anew.
    async fn round(&self, timeline: u32) -> Result<bool, ConnectFailure> {
        let mut progress = self.progress.lock().await;
        if progress.timeline != timeline || self.connector.known.timeline() != timeline {
            return Ok(true);
        }
        let link = self.link(timeline).await?;
        let failed = ConnectFailure::NotHealed;
        // Before the others are asked: what they have repeated until then is there in this round.
        let is_last = !self.may_come_back(&link).await.map_err(failed)?;
        let mut rest = Progress { timeline, is_last, ..Progress::default() };
        self.repeat_all(&link, progress.later.entries.clone(), &mut rest).await.map_err(failed)?;
        if is_last && !rest.later.is_empty() {
            self.give_up(&rest.later);
            rest.later = Later::default();
        }
        progress.later = rest.later;
        self.awaited.set(&progress.later);
        if progress.later.is_empty() {
            self.note_healed(&link).await.map_err(failed)?;
        }
        Ok(progress.later.is_empty())
    }

    /// Whether other nodes that are alive still repeat something.
    async fn may_come_back(&self, link: &Link) -> Result<bool, ChangeFailure> {
        let most = Duration::from_millis(self.connector.limits.catch_up_ms);
        let least = Duration::from_millis(self.connector.limits.catch_up_least_ms);
        match self.connector.known.since_failover() {
            Some(since) if since < least => Ok(true),
            Some(since) if since < most => {
                let me = self.membership.joined().map_or(0, |joined| joined.id);
                self.read(link, catch_up::others_heal(link, me)).await
            }
            _ => Ok(false),
        }
    }

    fn give_up(&self, later: &Later) {
        let lost = later.entries.len();
        self.lost.fetch_add(lost as u64, Ordering::Relaxed);
        tracing::error!(
            lost,
            "the failover of the database lost changes that cannot be saved again, because they depend on other lost \
             changes that no node has saved again"
        );
    }
}
