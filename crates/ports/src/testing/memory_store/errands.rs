//! What other nodes have saved for a node. Each look goes on where the one before it has ended.

use std::collections::BTreeMap;

use tokenrail_domain::{Agent, AgentId, Copied, NodeId, Turn, TurnState};

use super::State;
use super::shelf::Shelf;
use crate::planted::{Bug, is_planted};
use crate::{Errands, OpenErrand};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
    Stops,
    Turns,
    Purges,
    Leftovers,
    Orphans,
}

/// The agent after which the next look of a node goes on.
#[derive(Default)]
pub(super) struct Rounds(BTreeMap<(NodeId, Look), AgentId>);

impl Rounds {
    /// As many of `found`, which is in order, as fit: first those after the last look, then the others.
    pub(super) fn next(
        &mut self,
        node: NodeId,
        look: Look,
        found: Vec<AgentId>,
        limit: usize,
    ) -> Vec<AgentId> {
        let (mut next, last) = (found, self.0.remove(&(node, look)));
        let seen = next.partition_point(|agent| last.is_some_and(|last| *agent <= last));
        next.rotate_left(seen);
        if limit < next.len() {
            next.truncate(limit);
            self.0.extend(next.last().map(|last| ((node, look), *last)));
        }
        next.sort_unstable();
        next
    }
}

impl State {
    pub(super) fn errands(&mut self, node: NodeId, limit: usize) -> Errands {
        let mine = || self.shelves.values().filter(|shelf| shelf.belongs_to(node));
        let open = mine().filter_map(|shelf| {
            let open = shelf.open_turns();
            let stops = |turn: &&Turn| turn.stop.is_some();
            let stop = open.iter().any(|turn| turn.stop.is_some());
            let stop_running = open.iter().filter(stops).any(|turn| turn.state == TurnState::Running);
            let waits = open.iter().any(|turn| turn.state == TurnState::Queued);
            let is_taken = !open.is_empty() && !shelf.agent.is_at_home(node);
            (waits || stop || is_taken).then_some(OpenErrand { agent: shelf.agent.id, stop, stop_running })
        });
        let mut open: Vec<_> = open.collect();
        let is_import = |shelf: &Shelf| shelf.agent.copy == Some(Copied::File);
        let is_left = |shelf: &Shelf| {
            let is_lost = |home| self.cluster.is_lost(home) && !is_planted(Bug::PurgeWaitsForLostNode);
            let home_is_lost = shelf.agent.home.is_some_and(is_lost);
            (home_is_lost && !self.is_catching_up() || shelf.agent.is_unclaimed())
                && shelf.open_turns().is_empty()
        };
        let marked = self.shelves.values().filter(|shelf| shelf.to_purge && !is_import(shelf));
        let to_purge = marked.filter(|shelf| shelf.agent.is_at_home(node) || is_left(shelf));
        let to_purge = to_purge.map(|shelf| shelf.agent.id).collect();
        let leftovers = self.cluster.leftovers.iter().filter(|(home, _)| *home == node);
        let leftovers = leftovers.map(|(_, agent)| *agent).collect();
        let of = |stop| open.iter().filter(|errand| errand.stop == stop).map(|errand| errand.agent).collect();
        let (stops, turns): (Vec<_>, Vec<_>) = (of(true), of(false));
        let room = limit.saturating_sub(turns.len()).max(limit.div_ceil(2));
        let rounds = &mut self.cluster.rounds;
        let stops = rounds.next(node, Look::Stops, stops, room);
        let turns = rounds.next(node, Look::Turns, turns, limit.saturating_sub(stops.len()));
        open.retain(|errand| stops.contains(&errand.agent) || turns.contains(&errand.agent));
        open.sort_by_key(|errand| (!errand.stop, errand.agent));
        Errands {
            turns: open,
            to_purge: rounds.next(node, Look::Purges, to_purge, limit),
            leftovers: rounds.next(node, Look::Leftovers, leftovers, limit),
        }
    }

    /// Tells the home of an agent that is purged by this node to remove the agent's files. An imported agent has none,
    /// and neither has one that no node has taken yet. A node that is gone is not told.
    pub(super) fn leave_files(&mut self, agent: &Agent, node: NodeId) {
        let has_files = agent.copy != Some(Copied::File) && !agent.is_unclaimed();
        let is_left = |home: &NodeId| *home != node && has_files && !self.cluster.is_gone(*home);
        if let Some(home) = agent.home.filter(is_left) {
            self.cluster.leftovers.insert((home, agent.id));
        }
    }
}
