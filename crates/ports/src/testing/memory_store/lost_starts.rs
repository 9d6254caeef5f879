//! What a failover may have lost: that turns have begun.

use std::collections::BTreeSet;

use tokenrail_domain::{AgentId, NodeId, TurnNumber, TurnState};

use super::State;

/// What was there when the failover was noticed.
#[derive(Default)]
pub(super) struct LostStarts {
    /// The nodes that have not saved again what the failover may have lost.
    unhealed: BTreeSet<NodeId>,
    /// The turns that waited. One that was queued later has not begun: its start would be there.
    waited: BTreeSet<(AgentId, TurnNumber)>,
}

impl LostStarts {
    /// A node that is alive saves everything again.
    pub(super) fn heal(&mut self, node: NodeId) {
        self.unhealed.remove(&node);
    }

    pub(super) fn is_unhealed(&self, node: NodeId) -> bool {
        self.unhealed.contains(&node)
    }
}

impl State {
    /// A failover has happened. No node has saved anything again yet.
    pub(super) fn lose_starts(&mut self) {
        let queued = |turn: &(AgentId, TurnNumber, TurnState)| turn.2 == TurnState::Queued;
        let turns = self
            .shelves
            .iter()
            .flat_map(|(agent, of)| of.turns.values().map(|turn| (*agent, turn.number, turn.state)));
        let waited = turns.filter(queued).map(|(agent, number, _)| (agent, number)).collect();
        self.cluster.lost_starts = LostStarts { unhealed: self.cluster.ids(), waited };
    }

    pub(super) fn may_have_begun(&self, agent: AgentId) -> bool {
        let LostStarts { unhealed, waited } = &self.cluster.lost_starts;
        let Some(of) = self.shelves.get(&agent) else { return false };
        let is_unhealed = |home: &NodeId| self.cluster.is_lost(*home) && unhealed.contains(home);
        let mut turns = of.turns.values().filter(|turn| turn.state == TurnState::Queued);
        of.agent.home.as_ref().is_some_and(is_unhealed)
            && turns.any(|turn| waited.contains(&(agent, turn.number)))
    }
}
