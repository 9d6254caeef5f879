//! Launches of the memory store that wait for a node.

use tokenrail_domain::{AgentId, NodeId};

use super::State;
use super::shelf::Shelf;

impl State {
    pub(super) fn claim_launches(
        &mut self,
        node: NodeId,
        types: &[String],
        (room, stopped): (usize, usize),
    ) -> Vec<AgentId> {
        let unclaimed = || self.shelves.values().filter(|shelf| shelf.agent.is_unclaimed());
        let is_stopped = |shelf: &&Shelf| shelf.open_turns().iter().all(|turn| turn.stop.is_some());
        let to_stop = unclaimed().filter(is_stopped).take(stopped);
        let to_run = unclaimed().filter(|shelf| types.contains(&shelf.agent.kind) && !is_stopped(shelf));
        let mut claimed: Vec<AgentId> =
            to_stop.chain(to_run.take(room)).map(|shelf| shelf.agent.id).collect();
        claimed.sort();
        for agent in &claimed {
            self.touch(*agent);
            if let Some(of) = self.shelves.get_mut(agent) {
                (of.agent.home, of.owner) = (Some(node), Some(node));
                of.epoch.0 += 1;
            }
        }
        claimed
    }
}
