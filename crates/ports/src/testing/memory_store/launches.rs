//! Launches of the memory store that wait for a node.

use tokenrail_domain::{AgentId, AgentStatus, Copied, NodeId};

use super::State;
use super::shelf::Shelf;
use crate::{LaunchClaim, StoreError};

impl State {
    pub(super) fn claim_launches(&mut self, node: NodeId, claim: &LaunchClaim) -> Vec<AgentId> {
        let LaunchClaim { types, to_run: room, to_stop: stopped } = claim;
        let unclaimed = || self.shelves.values().filter(|shelf| shelf.agent.is_unclaimed());
        let has_open = |shelf: &&Shelf, is_stopped: bool| {
            let open = shelf.open_turns();
            !open.is_empty() && open.iter().all(|turn| turn.stop.is_some()) == is_stopped
        };
        let to_stop = unclaimed().filter(|shelf| has_open(shelf, true)).take(*stopped);
        let to_run = unclaimed().filter(|shelf| types.contains(&shelf.agent.kind) && has_open(shelf, false));
        let mut claimed: Vec<AgentId> =
            to_stop.chain(to_run.take(*room)).map(|shelf| shelf.agent.id).collect();
        claimed.sort();
        for agent in &claimed {
            self.touch(*agent);
            self.cluster.leftovers.remove(&(node, *agent));
            if let Some(of) = self.shelves.get_mut(agent) {
                (of.agent.home, of.owner) = (Some(node), Some(node));
                of.epoch.0 += 1;
            }
        }
        claimed
    }

    pub(super) fn let_go(&mut self, id: AgentId, node: NodeId) -> bool {
        let Some(found) = self.shelves.get(&id) else { return false };
        let Some(home) = found.agent.home else { return false };
        let is_left = home == node || self.cluster.is_lost(home) || found.owner == Some(node);
        let is_taken = found.owner.is_some_and(|owner| owner != node);
        let is_runnable = found.agent.deleted_at.is_none() && found.agent.copy != Some(Copied::File);
        if !is_left || is_taken || !is_runnable || found.agent.status == AgentStatus::Running {
            return false;
        }
        self.touch(id);
        if let Some(of) = self.shelves.get_mut(&id) {
            (of.agent.home, of.owner) = (Some(NodeId::ANY), None);
            of.epoch.0 += 1;
            if of.agent.copy.is_none() {
                of.agent.cwd.clear();
                if home != NodeId::ANY && !self.cluster.is_gone(home) {
                    self.cluster.leftovers.insert((home, id));
                }
            }
        }
        true
    }

    pub(super) fn let_all_go(
        &mut self,
        types: &[String],
        limit: usize,
        node: NodeId,
    ) -> Result<usize, StoreError> {
        let (left, error) = &mut self.leaving_refused;
        if let Some(fewer) = left.checked_sub(1) {
            *left = fewer;
            return Err(error());
        }
        let needs_no_home = |shelf: &&Shelf| match shelf.agent.copy {
            None => types.contains(&shelf.agent.kind),
            Some(Copied::Replay(_)) => !shelf.open_turns().is_empty(),
            Some(Copied::File) => false,
        };
        let mine = self.shelves.values().filter(|shelf| shelf.agent.home == Some(node));
        let agents: Vec<AgentId> = mine.filter(needs_no_home).map(|shelf| shelf.agent.id).collect();
        Ok(agents.into_iter().filter(|agent| self.let_go(*agent, node)).take(limit).count())
    }
}
