//! The use cases: recovery, reading, following, shutdown. Those that change something are in `commands`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
#[cfg(planted_bugs)]
use tokenrail_domain::AgentStatus;
use tokenrail_domain::{Agent, AgentId, Event, ListedAgent, Sequence, Timestamp, TurnState};
#[cfg(planted_bugs)]
use tokenrail_ports::planted::{Bug, is_planted};
use tokenrail_ports::{Abilities, AgentFilter, ListPage, MessagePage, PageLimit, Probe};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::compactor::compact;
use crate::core::Core;
use crate::error::Refusal;
use crate::follow::Follower;
use crate::limits::Limits;
use crate::lookout::look_out;
use crate::news::NewsReader;
use crate::outside::{AgentType, Outside};
use crate::stats::{Counters, Stats};

/// How many agent types are asked at a time whether they could be started: each starts its program.
const PROBES_AT_ONCE: usize = 4;

/// The use cases. Cheap to clone; all clones are one service.
#[derive(Clone)]
pub struct AgentService {
    pub(crate) core: Arc<Core>,
}

/// One configured agent type, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    pub name: String,
    pub runner: String,
    pub format: String,
    pub abilities: Abilities,
    pub default: bool,
    pub probe: Probe,
}

impl AgentService {
    /// Makes the service; `runtime` carries the agents' tasks. Call [`AgentService::recover`] before the first
    /// client comes.
    pub fn new(outside: Outside, limits: Limits, runtime: Handle) -> Self {
        let core = Arc::new(Core::new(outside, &limits, runtime));
        core.tracker.spawn_on(compact(Arc::clone(&core)), &core.runtime);
        core.tracker.spawn_on(look_out(Arc::clone(&core)), &core.runtime);
        Self { core }
    }

    /// Takes up what an earlier life of the server left: running turns are adopted or closed, waiting ones run, what
    /// was being stopped or purged is finished, and runs that belong to no turn are ended. Gives the number of agents
    /// taken up.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn recover(&self) -> Result<usize, Refusal> {
        // What is looked at here is short.
        let field_bytes = self.core.limits.list_field_bytes;
        let agents = self.core.outside.agents.with_open_turns(field_bytes).await?;
        let agents: Vec<Agent> = agents.into_iter().map(|listed| listed.agent).collect();
        #[cfg(planted_bugs)]
        let agents: Vec<Agent> = agents
            .into_iter()
            .filter(|agent| !is_planted(Bug::RecoverForgetsQueued) || agent.status == AgentStatus::Running)
            .collect();
        self.sweep(&agents).await?;
        for agent in &agents {
            self.core.tails.of(agent.id).raise(agent.head);
            self.ensure_task(agent);
        }
        for agent in self.core.outside.agents.to_purge().await? {
            let service = self.clone();
            let purge = async move { service.purge_in_background(agent).await };
            self.core.tracker.spawn_on(purge, &self.core.runtime);
        }
        Ok(agents.len())
    }

    /// Ends the runs of earlier lives that nobody will take up: their agents or turns are gone. Those whose types are
    /// not in the configuration stay: they may be there again at the next start.
    async fn sweep(&self, agents: &[Agent]) -> Result<(), Refusal> {
        let types = &self.core.outside.types;
        let mut keep = BTreeSet::new();
        for agent in agents {
            let turns = self.core.outside.agents.open_turns(agent.id).await?;
            let running = turns.iter().filter(|turn| turn.state == TurnState::Running);
            keep.extend(running.map(|turn| (agent.id, turn.run)));
        }
        for (name, kind) in types {
            match kind.runner.sweep(&keep).await {
                Ok(0) => {}
                Ok(swept) => tracing::warn!(kind = name, swept, "runs that belong to no turn were ended"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(kind = name, error, "runs that belong to no turn cannot be ended");
                }
            }
        }
        Ok(())
    }

    /// The agent, deleted or not.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn get(&self, id: AgentId) -> Result<Agent, Refusal> {
        self.core.outside.agents.get(id).await?.ok_or(Refusal::NotFound(id))
    }

    /// One page of agents as lists show them, newest first unless the filter says otherwise: at most
    /// `limits.list_agents` and about `limits.list_bytes`.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn list(&self, mut filter: AgentFilter) -> Result<ListPage<ListedAgent>, Refusal> {
        filter.limit = filter.limit.min(self.core.limits.list_agents);
        Ok(self.core.outside.agents.list(filter, self.core.limits.list()).await?)
    }

    /// One page of what a person sees of an agent, after `since`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn messages(
        &self,
        id: AgentId,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<MessagePage, Refusal> {
        self.check_cursor(id, since).await?;
        Ok(self.core.outside.journal.messages(id, since, self.page(events)).await?)
    }

    /// The same of its newest `last` events alone, and the cursor after which that page begins.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn newest_messages(
        &self,
        id: AgentId,
        last: u64,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<(Sequence, MessagePage), Refusal> {
        let head = self.check_cursor(id, since).await?;
        let since = since.max(Sequence(head.0.saturating_sub(last)));
        let page = self.core.outside.journal.messages(id, since, self.page(events)).await?;
        Ok((since, page))
    }

    /// One page of all events of an agent, after `since`, and the number of its newest event.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn events(
        &self,
        id: AgentId,
        since: Sequence,
        events: Option<usize>,
    ) -> Result<(Vec<Event>, Sequence), Refusal> {
        let head = self.check_cursor(id, since).await?;
        let events = self.core.outside.journal.read(id, since, self.page(events)).await?;
        let newest = events.last().map_or(head, |event| event.sequence.max(head));
        Ok((events, newest))
    }

    /// Follows an agent from `since`, or from its newest event. With `keep` the follower waits for later turns
    /// when the agent has ended.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn follow(
        &self,
        id: AgentId,
        since: Option<Sequence>,
        keep: bool,
    ) -> Result<(Agent, Follower), Refusal> {
        // The bell first, then the store: what is committed in between rings.
        let tail = self.core.tails.of(id);
        let agent = self.get(id).await?;
        #[cfg(planted_bugs)]
        let (tail, agent) = if is_planted(Bug::SnapshotBeforeSubscribe) {
            drop(tail);
            let agent = self.get(id).await?;
            (self.core.tails.of(id), agent)
        } else {
            (tail, agent)
        };
        tail.raise(agent.head);
        let head = tail.bell().head;
        let cursor = since.unwrap_or(head);
        #[cfg(planted_bugs)]
        let cursor = if is_planted(Bug::AheadIsNothing) { cursor.min(head) } else { cursor };
        if head < cursor {
            return Err(Refusal::CursorAhead { head });
        }
        Ok((agent, Follower::new(&self.core, id, cursor, keep, tail)))
    }

    /// The configured agent types, and whether they could be started now.
    pub async fn types(&self) -> Vec<TypeInfo> {
        let types: &BTreeMap<String, AgentType> = &self.core.outside.types;
        let infos = types.iter().map(async |(name, kind)| TypeInfo {
            name: name.clone(),
            runner: kind.runner_name.clone(),
            format: kind.format.clone(),
            abilities: kind.abilities,
            default: self.core.outside.default_type.as_ref() == Some(name),
            probe: kind.runner.probe().await,
        });
        stream::iter(infos).buffered(PROBES_AT_ONCE).collect().await
    }

    /// News of all agents from now on.
    pub fn news(&self) -> NewsReader {
        self.core.news.subscribe()
    }

    /// Whether the store can be read and written.
    ///
    /// # Errors
    /// [`Refusal::Store`], [`Refusal::ShuttingDown`].
    pub async fn check(&self) -> Result<(), Refusal> {
        if self.core.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        Ok(self.core.outside.agents.check().await?)
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        Stats {
            events_saved: Counters::read(&counters.events_saved),
            batches_saved: Counters::read(&counters.batches_saved),
            write_retries: Counters::read(&counters.write_retries),
            turns_started: Counters::read(&counters.turns_started),
            turns_ended: Counters::read(&counters.turns_ended),
            invariant_violations: Counters::read(&counters.invariant_violations),
            active_agents: self.core.active_agents() as u64,
            followers: self.core.tails.followers() as u64,
            tail_bytes: self.core.tails.bytes() as u64,
            tasks: self.core.runtime.metrics().num_alive_tasks() as u64,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// Fires when the server goes down: streams end then.
    pub fn closing(&self) -> CancellationToken {
        self.core.closing.clone()
    }

    /// Ends the streams and the tasks. The agents live on and are taken up by the next life of the server, unless
    /// `stop_agents`. Waits for at most `patience`; gives false where that was not enough.
    pub async fn shutdown(&self, stop_agents: bool, patience: Duration) -> bool {
        let wait = async {
            if stop_agents {
                self.core.draining.cancel();
                while 0 < self.core.active_agents() {
                    self.core.retired.notified().await;
                }
            }
            self.core.closing.cancel();
            self.core.tracker.close();
            self.core.tracker.wait().await;
            for kind in self.core.outside.types.values() {
                kind.runner.dismiss_all().await;
            }
        };
        let in_time = tokio::time::timeout(patience, wait).await.is_ok();
        self.core.closing.cancel();
        in_time
    }

    async fn check_cursor(&self, id: AgentId, since: Sequence) -> Result<Sequence, Refusal> {
        let head = self.get(id).await?.head;
        #[cfg(planted_bugs)]
        let since = if is_planted(Bug::AheadIsNothing) { since.min(head) } else { since };
        if head < since { Err(Refusal::CursorAhead { head }) } else { Ok(head) }
    }

    fn page(&self, events: Option<usize>) -> PageLimit {
        let page = self.core.limits.page();
        PageLimit { events: events.unwrap_or(page.events).clamp(1, page.events), ..page }
    }
}
