//! What is checked at the ports of a node, and how its process is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{AgentId, NodeId, Sequence, TurnNumber};
use tokenrail_ports::TurnOrder;
use tokio::sync::Notify;

use super::late::LateAppend;
use super::removals::Removals;
use crate::world::World;

/// A node that has beaten this recently must not be declared lost: less than `lost_after`, because what was read may
/// be as old as a beat.
const BEATS_MS: u64 = 25_000;
/// A node that cannot beat for this long starts no agent: `in_touch`, and what the start itself takes.
const CUT_OFF_MS: u64 = 29_000;

const NEVER: u64 = u64::MAX;

/// What is known of all nodes.
#[derive(Default)]
pub(crate) struct Promises(Mutex<Known>);

#[derive(Default)]
pub(super) struct Known {
    /// When each node has last beaten.
    beats: BTreeMap<NodeId, u64>,
    owners: BTreeMap<AgentId, NodeId>,
    started: BTreeSet<(AgentId, TurnNumber)>,
    prompts: BTreeSet<(AgentId, String)>,
    /// When each event of an agent was saved.
    saved: BTreeMap<AgentId, Vec<u64>>,
    /// The turns whose start was saved.
    begun: BTreeSet<(AgentId, TurnNumber)>,
    /// Turns that had begun at a node, and a failover has lost it.
    lost_starts: Vec<(NodeId, AgentId, TurnNumber, String)>,
    /// The nodes that are declared lost.
    lost: BTreeSet<NodeId>,
    pub(super) removals: Removals,
    pub(super) late: Vec<LateAppend>,
}

impl Promises {
    /// When an event was saved.
    pub(super) fn saved_ms(&self, sequence: Sequence, agent: AgentId) -> Option<u64> {
        self.known().saved.get(&agent)?.get(sequence.0 as usize - 1).copied()
    }

    pub(super) fn has_begun(&self, agent: AgentId, turn: TurnNumber) -> bool {
        self.known().begun.contains(&(agent, turn))
    }

    /// A failover has lost what the journal of an agent has after `head`.
    pub(super) fn has_lost_after(&self, agent: AgentId, head: Sequence) {
        self.known().saved.entry(agent).or_default().truncate(head.0 as usize);
    }

    /// A failover has lost that this turn has begun at a node.
    pub(super) fn has_lost_start(&self, node: NodeId, agent: AgentId, (turn, prompt): (TurnNumber, String)) {
        self.known().lost_starts.push((node, agent, turn, prompt));
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.known().lost.contains(&node)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One life of a node, as its ports see it.
pub(crate) struct Place {
    node: NodeId,
    promises: Arc<Promises>,
    stopped: AtomicBool,
    /// Not a `watch`, which wakes those that wait in a random order.
    goes_on: Notify,
    /// Since when beats fail.
    cut_off_ms: AtomicU64,
    /// When the process last went on after it was stopped.
    woken_ms: AtomicU64,
}

impl Place {
    pub(super) fn new(node: NodeId, promises: Arc<Promises>) -> Self {
        let (cut_off_ms, woken_ms) = (AtomicU64::new(NEVER), AtomicU64::new(0));
        let (stopped, goes_on) = (AtomicBool::new(false), Notify::new());
        Self { node, promises, stopped, goes_on, cut_off_ms, woken_ms }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn promises(&self) -> &Promises {
        &self.promises
    }

    /// Stops the process, or lets it go on.
    pub(super) fn stop(&self, stopped: bool, now: u64) {
        self.woken_ms.store(now, Ordering::Relaxed);
        self.stopped.store(stopped, Ordering::Relaxed);
        if !stopped {
            self.goes_on.notify_waiters();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn woken_ms(&self) -> u64 {
        self.woken_ms.load(Ordering::Relaxed)
    }

    /// Lets beats fail, or no longer.
    pub(super) fn cut_off(&self, since: Option<u64>) {
        self.cut_off_ms.store(since.unwrap_or(NEVER), Ordering::Relaxed);
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off_ms.load(Ordering::Relaxed) != NEVER
    }

    pub(crate) async fn while_stopped(&self) {
        while self.is_stopped() {
            self.goes_on.notified().await;
        }
    }

    pub(crate) fn has_beaten(&self, now: u64) {
        self.promises.known().beats.insert(self.node, now);
    }

    /// If its process was dead at a failover, nothing shows it which turns had begun: they may run again.
    pub(crate) fn has_joined(&self) {
        let mut known = self.promises.known();
        known.lost.remove(&self.node);
        let (own, others) =
            std::mem::take(&mut known.lost_starts).into_iter().partition::<Vec<_>, _>(|it| it.0 == self.node);
        known.lost_starts = others;
        for (_, agent, turn, prompt) in own {
            known.started.remove(&(agent, turn));
            known.prompts.remove(&(agent, prompt));
        }
    }

    pub(crate) fn has_begun(&self, agent: AgentId, turn: TurnNumber) {
        self.promises.known().begun.insert((agent, turn));
    }

    pub(crate) fn has_declared_lost(&self, node: NodeId, now: u64) -> Result<(), String> {
        let beaten = self.promises.known().beats.get(&node).copied().unwrap_or(0);
        if now.saturating_sub(beaten) < BEATS_MS {
            return Err(format!("node {node} is declared lost at {now}, and it has beaten at {beaten}"));
        }
        self.promises.known().lost.insert(node);
        Ok(())
    }

    /// The journal of an agent reaches to `head` now.
    pub(crate) fn has_saved(&self, agent: AgentId, head: u64, now: u64) {
        let mut known = self.promises.known();
        let saved = known.saved.entry(agent).or_default();
        let len = saved.len().max(head as usize);
        saved.resize(len, now);
    }

    pub(crate) fn owns(&self, agent: AgentId) {
        self.promises.known().owners.insert(agent, self.node);
    }

    pub(crate) fn is_owned_by_other(&self, agent: AgentId, node: NodeId) -> bool {
        self.promises.known().owners.get(&agent).is_some_and(|owner| *owner != node)
    }

    /// This node is about to start an agent. `was_stopped` says whether its process was stopped by a signal since the
    /// runner was asked to: then another node may have taken the agent, and nobody could have looked before. This node
    /// ends the run when it learns of it.
    pub(crate) fn starts(&self, order: &TurnOrder, world: &World, was_stopped: bool) -> Result<(), String> {
        let (agent, now) = (order.agent, world.now_ms());
        let home = world.disk.saved_agent(agent).and_then(|agent| agent.home);
        // Of one that was purged while this node was lost, the run is ended when the node learns of it.
        let is_purged = world.disk.saved_agent(agent).is_none() && self.promises.may_be_purged(agent);
        if home != Some(self.node) && !is_purged && !was_stopped {
            return Err(format!("turn {} of an agent of {home:?} is run at node {}", order.run, self.node));
        }
        let mut known = self.promises.known();
        let first = known.started.insert((agent, order.run));
        if !first || !known.prompts.insert((agent, order.prompt.clone())) {
            return Err(format!("G10: turn {} is run twice, with {:?}", order.run, order.prompt));
        }
        let since = self.cut_off_ms.load(Ordering::Relaxed).max(self.woken_ms());
        if since != NEVER && CUT_OFF_MS < now.saturating_sub(since) && self.is_cut_off() {
            return Err(format!(
                "node {} starts an agent at {now}, and is out of touch since {since}",
                self.node
            ));
        }
        Ok(())
    }
}
