//! What the nodes of the memory store know of each other.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{AgentId, NodeId, Timestamp};
use tokio::time::Instant;

use super::errands::Rounds;
use super::failover::Failover;
use super::launch_rate::LaunchRate;
use super::lost_removals::Removals;
use super::lost_starts::LostStarts;
use crate::{Letter, LetterReply, Node, NodeState, TouchMark, Touched};

/// What the nodes of a store know of each other.
#[derive(Default)]
pub(super) struct Cluster {
    /// Whether agents have a home.
    pub(super) is_shared: bool,
    /// Beats fail.
    pub(super) beats_refused: bool,
    /// How many joins still fail.
    pub(super) joins_refused: u32,
    pub(super) lost_starts: LostStarts,
    pub(super) failover: Failover,
    pub(super) removals: Removals,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) watched: BTreeSet<(AgentId, NodeId)>,
    pub(super) leftovers: BTreeSet<(NodeId, AgentId)>,
    pub(super) rounds: Rounds,
    pub(super) launches: LaunchRate,
    pub(super) letters: Vec<(NodeId, Letter, Option<LetterReply>)>,
    /// When each agent was changed last, as the number of the change.
    pub(super) touches: BTreeMap<AgentId, i64>,
    pub(super) last_touch: i64,
    /// When the clock was first asked.
    pub(super) began: Option<Instant>,
}

impl Cluster {
    /// The time of the clock that the nodes share.
    pub(super) fn time(&mut self) -> Timestamp {
        let elapsed = self.began.get_or_insert_with(Instant::now).elapsed();
        Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    pub(super) fn ids(&self) -> BTreeSet<NodeId> {
        self.nodes.keys().copied().collect()
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.state.is_lost())
    }

    pub(super) fn is_gone(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.state == NodeState::Gone)
    }

    /// Whether another process is this node now, or nobody. A node that has never joined is not fenced.
    pub(super) fn is_fenced(&self, node: NodeId, incarnation: u64) -> bool {
        let is_another = |now: &Node| now.state != NodeState::Alive || now.pulse.incarnation != incarnation;
        self.nodes.get(&node).is_some_and(is_another)
    }

    pub(super) fn touched(&self, after: Option<TouchMark>, limit: usize) -> Touched {
        let Some(after) = after else {
            return Touched { agents: Vec::new(), mark: TouchMark(self.last_touch) };
        };
        let later = self.touches.iter().filter(|(_, touch)| after.0 < **touch);
        let mut agents: Vec<_> = later.map(|(agent, touch)| (*agent, TouchMark(*touch))).collect();
        agents.sort_by_key(|(_, touch)| *touch);
        agents.truncate(limit);
        let mark = agents.last().map_or(after, |(_, touch)| *touch);
        Touched { agents, mark }
    }
}
