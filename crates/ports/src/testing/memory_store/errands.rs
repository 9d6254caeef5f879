//! What the nodes of the memory store carry out for each other.

use tokenrail_domain::{Agent, Copied, NodeId, Turn, TurnState};

use super::State;
use super::shelf::Shelf;
use crate::{Errands, OpenErrand};

impl State {
    pub(super) fn errands(&self, node: NodeId, limit: usize) -> Errands {
        let mine = || self.shelves.values().filter(|shelf| shelf.belongs_to(node));
        let turns = mine().filter_map(|shelf| {
            let open = shelf.open_turns();
            let stops = |turn: &&Turn| turn.stop.is_some();
            let stop = open.iter().any(|turn| turn.stop.is_some());
            let stop_running = open.iter().filter(stops).any(|turn| turn.state == TurnState::Running);
            let waits = open.iter().any(|turn| turn.state == TurnState::Queued);
            let is_taken = !open.is_empty() && !shelf.agent.is_at_home(node);
            (waits || stop || is_taken).then_some(OpenErrand { agent: shelf.agent.id, stop, stop_running })
        });
        let is_import = |shelf: &Shelf| shelf.agent.copy == Some(Copied::File);
        let is_left = |shelf: &Shelf| {
            let home_is_lost = shelf.agent.home.is_some_and(|home| self.cluster.is_lost(home));
            (home_is_lost || shelf.agent.is_unclaimed()) && shelf.open_turns().is_empty()
        };
        let marked = self.shelves.values().filter(|shelf| shelf.to_purge && !is_import(shelf));
        let to_purge = marked.filter(|shelf| shelf.agent.is_at_home(node) || is_left(shelf));
        let mut turns: Vec<_> = turns.collect();
        turns.sort_by_key(|errand| (!errand.stop, errand.agent));
        turns.truncate(limit);
        let leftovers = self.cluster.leftovers.iter().filter(|(home, _)| *home == node);
        Errands {
            turns,
            to_purge: to_purge.map(|shelf| shelf.agent.id).take(limit).collect(),
            leftovers: leftovers.map(|(_, agent)| *agent).take(limit).collect(),
        }
    }

    /// Tells the home of an agent that is purged by this node to remove the agent's files. An imported agent has none,
    /// and neither has one that no node has taken yet.
    pub(super) fn leave_files(&mut self, agent: &Agent, node: NodeId) {
        let has_files = agent.copy != Some(Copied::File) && !agent.is_unclaimed();
        if let Some(home) = agent.home.filter(|home| *home != node && has_files) {
            self.cluster.leftovers.insert((home, agent.id));
        }
    }
}
