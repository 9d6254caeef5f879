//! A failover to a standby that lacks the last moments, when a node is dead at the same time. What nodes that live had
//! saved is there: they save it again at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, Sequence, Turn, TurnNumber, TurnState};
use tokio::time::Instant;

use super::State;
use super::shelf::Shelf;
use crate::{Epoch, Failovers, NodeState};

/// How long nodes wait for each other at most.
const CATCH_UP: Duration = Duration::from_secs(30);

/// What nodes know of the newest failover.
#[derive(Default)]
pub(super) struct Failover {
    /// What the standby has since it receives nothing more.
    standby: BTreeMap<AgentId, Shelf>,
    count: u32,
    happened: Option<Instant>,
    /// The nodes that have not said yet how far they had shown journals.
    untold: BTreeSet<NodeId>,
    seen: BTreeMap<AgentId, Sequence>,
}

impl Failover {
    pub(super) fn told(&self) -> Failovers {
        let since = self.happened.map(|happened| happened.elapsed());
        let count = u64::from(self.count);
        // The first server has timeline 1.
        Failovers { timeline: 1 + self.count, count, since, ..Failovers::default() }
    }

    pub(super) fn seen(&self, agent: AgentId) -> Sequence {
        self.seen.get(&agent).copied().unwrap_or(Sequence::START)
    }
}

/// What a failover has lost of an agent for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTail {
    pub agent: AgentId,
    /// How far the journal reaches now.
    pub head: Sequence,
    /// The turns that had begun, and wait again.
    pub starts: Vec<TurnNumber>,
    /// Whether its deletion is lost.
    pub deletion: bool,
    /// Whether its purge is lost.
    pub purge: bool,
}

impl State {
    /// The standby receives nothing more.
    pub(super) fn fall_behind(&mut self) {
        self.cluster.failover.standby.clone_from(&self.shelves);
        self.cluster.removals.fall_behind();
    }

    /// The standby takes over while this node is dead.
    pub(super) fn fail_over(&mut self, dead: NodeId) -> Vec<LostTail> {
        let standby = std::mem::take(&mut self.cluster.failover.standby);
        let mut lost = self.lose_removals(&standby, dead);
        for (agent, was) in standby {
            let Some(of) = self.shelves.get_mut(&agent).filter(|of| of.only_node_went_on(&was, dead)) else {
                continue;
            };
            let is_queued = |turn: &Turn| turn.state == TurnState::Queued;
            let begun =
                was.turns.values().filter(|turn| is_queued(turn) && !is_queued(&of.turns[&turn.number]));
            let starts = begun.map(|turn| turn.number).collect();
            lost.push(LostTail { agent, head: was.agent.head, starts, deletion: false, purge: false });
            // What is still under way to the former server changes nothing.
            let epoch = Epoch(of.epoch.0 + 1);
            *of = Shelf { epoch, ..was };
            self.touch(agent);
        }
        self.lose_starts();
        let failover = &mut self.cluster.failover;
        failover.count += 1;
        failover.happened = Some(Instant::now());
        failover.untold = self.cluster.nodes.keys().copied().collect();
        lost
    }

    pub(super) fn note_seen(&mut self, node: NodeId, seen: Vec<(AgentId, Sequence)>) {
        for (agent, head) in seen {
            if self.shelves.get(&agent).is_some_and(|of| of.agent.head < head) {
                let noted = self.cluster.failover.seen.entry(agent).or_insert(head);
                *noted = head.max(*noted);
            }
        }
        self.cluster.failover.untold.remove(&node);
    }

    /// Whether a node that is alive has not saved everything again, or has not said how far it had shown journals.
    pub(super) fn is_catching_up(&self) -> bool {
        let Failover { happened, untold, .. } = &self.cluster.failover;
        let is_awaited = |id: &NodeId| untold.contains(id) || self.cluster.lost_starts.is_unhealed(*id);
        let mut alive = self.cluster.nodes.values().filter(|node| node.state == NodeState::Alive);
        happened.is_some_and(|happened| happened.elapsed() < CATCH_UP)
            && alive.any(|node| is_awaited(&node.id))
    }
}

impl Shelf {
    /// Whether nobody but this node, which owns it, has changed it since it was like `was`, and only by what the agent
    /// said and did.
    fn only_node_went_on(&self, was: &Self, node: NodeId) -> bool {
        let is_its_own =
            |of: &Self| of.agent.home == Some(node) && of.owner.is_none_or(|owner| owner == node);
        let asked = |of: &Self| -> Vec<_> {
            of.turns.values().map(|turn| (turn.number, turn.run, turn.asked_at, turn.stop)).collect()
        };
        is_its_own(self)
            && is_its_own(was)
            && was.agent.head < self.agent.head
            && asked(was) == asked(self)
            && was.agent.deleted_at == self.agent.deleted_at
    }
}
