//! Hears the hints of other nodes, and looks at the store by itself.
//!
//! A hint only makes this node look sooner. What it looks at is the same without any hint:
//!
//! | what | by hints | without any |
//! | --- | --- | --- |
//! | journals that are followed here | `gatherer` reads what is new | each poll compares the heads |
//! | what others have saved for this node | `errands`, `letters` | each poll |
//! | what clients see that watch all agents | `lifecycle_elsewhere` | each poll reads what has changed |
//!
//! On a store that cannot be shared, there are no hints, and the poll only checks that every committed event was
//! announced. It queries each followed agent once, however many followers the agent has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, Sequence};
use tokenrail_ports::{Heard, Hint, Standing, StoreError};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::after_failover::AfterFailover;
use crate::core::Core;
use crate::planted::{self, Bug};
use crate::service::AgentService;
use crate::stats::Counters;

/// Listens and polls until the server shuts down. A poll that hangs, on a connection whose other end is silent, holds
/// up no hint.
pub(crate) async fn listen(service: AgentService) {
    let missed = Notify::new();
    tokio::join!(service.hear_all(&missed), service.poll_always(&missed));
}

impl Core {
    /// Until the next look at the store.
    fn poll_pause(&self) -> Duration {
        let limits = self.limits.nodes;
        match (self.outside.nodes.is_shared(), self.outside.bus.is_working()) {
            (false, _) => self.limits.saving.look_again,
            (true, true) => limits.poll,
            (true, false) => limits.poll_without_hints,
        }
    }
}

impl AgentService {
    async fn hear_all(&self, missed: &Notify) {
        let core = &self.core;
        if !core.outside.nodes.is_shared() {
            return;
        }
        loop {
            tokio::select! {
                biased;
                () = core.closing.cancelled() => return,
                heard = core.outside.bus.heard() => match heard {
                    Heard::Hints(hints) => self.hear(hints),
                    Heard::Missed if planted::correctly(Bug::MissedIgnored) => {
                        self.hear_missed();
                        missed.notify_one();
                    }
                    Heard::Missed => {}
                },
            }
        }
    }

    async fn poll_always(&self, missed: &Notify) {
        let core = &self.core;
        loop {
            tokio::select! {
                biased;
                () = core.closing.cancelled() => return,
                () = missed.notified() => {}
                () = sleep(core.poll_pause()) => {}
            }
            if planted::correctly(Bug::PollOff) {
                core.closing.run_until_cancelled(self.poll()).await;
            }
        }
    }

    fn hear(&self, hints: Vec<Hint>) {
        let core = &self.core;
        let me = core.membership.me();
        for hint in hints {
            match hint {
                Hint::Head { agent, head } => core.wanted.want(agent, head),
                Hint::Created(_) | Hint::Changed(_) | Hint::Deleted(_) => core.lifecycle_elsewhere.note(hint),
                Hint::Errand(NodeId::ANY) => core.work_left_here.notify_one(),
                Hint::Errand(node) | Hint::Letter(node) if Some(node) == me => {
                    core.work_left_here.notify_one();
                }
                Hint::Errand(_) | Hint::Letter(_) => {}
            }
        }
    }

    /// Hints may have been lost.
    pub(super) fn hear_missed(&self) {
        self.core.lifecycle_elsewhere.missed();
        self.core.work_left_here.notify_one();
    }

    async fn poll(&self) {
        if let Err(error) = self.look_at_followed().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot read the latest sequence numbers from the database");
        }
        if self.core.outside.nodes.is_shared() {
            self.core.work_left_here.notify_one();
            if planted::correctly(Bug::MissedIgnored) {
                self.core.lifecycle_elsewhere.look();
            }
        }
    }

    async fn look_at_followed(&self) -> Result<(), StoreError> {
        let followed = planted::instead(Bug::HintIsTruth, self.core.tails.followed(), Vec::new);
        // Before the read, so that it shows what is there after the failover.
        let may_be_behind = AfterFailover::of(&self.core).may_be_behind();
        let left = if may_be_behind { self.core.tails.shown_lately.all() } else { BTreeMap::new() };
        let asked: BTreeSet<AgentId> = followed.iter().chain(left.keys()).copied().collect();
        let mut standings = BTreeMap::new();
        if !asked.is_empty() {
            let found = self.core.outside.agents.standings(asked.into_iter().collect()).await?;
            standings.extend(found.into_iter().map(|standing| (standing.agent, standing)));
        }
        if may_be_behind {
            self.core.note_seen(&followed, left, &standings).await?;
        }
        for agent in followed {
            let standing = standings.get(&agent);
            self.core.count_found(agent, standing);
            self.core.apply_standing(agent, standing);
        }
        Ok(())
    }
}

impl Core {
    /// After a failover, tells the other nodes how far journals were shown here that do not reach there any more, or
    /// that there are none. If the node of such an agent was ended too, it or the node that takes the agent over must
    /// give these numbers to nothing else. `shown`: to readers that have left.
    async fn note_seen(
        &self,
        followed: &[AgentId],
        mut shown: BTreeMap<AgentId, Sequence>,
        standings: &BTreeMap<AgentId, Standing>,
    ) -> Result<(), StoreError> {
        for agent in followed {
            let Some(tail) = self.tails.get(*agent) else { continue };
            let head = shown.entry(*agent).or_default();
            *head = tail.state().head.max(*head);
        }
        shown.retain(|agent, head| standings.get(agent).is_some_and(|standing| standing.head < *head));
        self.outside.nodes.note_seen(shown.into_iter().collect()).await
    }

    /// Counts a journal of another node that is ahead of all hints. The hint may still be under way, so a few are
    /// normal.
    fn count_found(&self, agent: AgentId, standing: Option<&Standing>) {
        let Some((standing, tail)) = standing.zip(self.tails.get(agent)) else { return };
        let is_told = standing.head <= tail.state().head
            || self.task_handle(agent).is_some()
            || self.wanted.is_wanted(agent, standing.head);
        if self.outside.nodes.is_shared() && !is_told {
            Counters::add(&self.counters.poll_found, 1);
        }
    }

    /// Tells the followers of an agent how far it is. `None` if it is unknown or purged.
    ///
    /// No tail is held during the query, so that its last reader may leave. An event that is committed just now may be
    /// announced twice. That is harmless, because readers go by the sequence number.
    pub(super) fn apply_standing(&self, agent: AgentId, standing: Option<&Standing>) {
        let Some(tail) = self.tails.get(agent) else { return };
        let has_task = self.task_handle(agent).is_some();
        match standing {
            Some(standing) if has_task || !self.outside.nodes.is_shared() => tail.raise(standing.head),
            // The head first: a reader ends when it has everything and nothing is open.
            Some(standing) => {
                tail.raise(standing.head);
                // After a failover, the start of a turn may not be there yet.
                if standing.open || !AfterFailover::of(self).may_be_behind() {
                    tail.set_active(standing.open);
                }
                if standing.deleted && !standing.open {
                    tail.set_gone();
                }
            }
            None if planted::is_planted(Bug::PurgeUntoldElsewhere) => {}
            None if self.outside.nodes.is_shared() && !AfterFailover::of(self).may_be_behind() => {
                tail.set_gone();
            }
            None => {}
        }
    }
}
