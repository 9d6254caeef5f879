//! What is known of agents that are deleted and purged: what nodes have begun to save, and what is on their disks.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{AgentId, Event, NodeId};
use tokenrail_ports::Deletion;

use super::place::{Place, Promises};

#[derive(Default)]
pub(super) struct Removals {
    /// The agents that a node was about to mark as deleted, and whether also as to be purged.
    deletions: BTreeMap<AgentId, bool>,
    purges: BTreeMap<AgentId, Purge>,
    folders: BTreeSet<(NodeId, AgentId)>,
}

/// A node was about to remove the rows of an agent.
struct Purge {
    at_ms: u64,
    /// Its journal then.
    journal: Vec<Event>,
}

impl Promises {
    /// Whether a node may have marked the agent as deleted.
    pub(super) fn may_be_deleted(&self, agent: AgentId) -> bool {
        self.known().removals.deletions.contains_key(&agent)
    }

    /// Whether a node may have marked the agent as to be purged.
    pub(super) fn may_be_purged(&self, agent: AgentId) -> bool {
        self.known().removals.deletions.get(&agent).is_some_and(|purge| *purge)
    }

    /// When the rows of an agent were removed that has none.
    pub(super) fn purged_ms(&self, agent: AgentId) -> Option<u64> {
        self.known().removals.purges.get(&agent).map(|purge| purge.at_ms)
    }

    /// What the journal of an agent was before its rows were removed.
    pub(super) fn journal(&self, agent: AgentId) -> Vec<Event> {
        self.known().removals.purges.get(&agent).map(|purge| purge.journal.clone()).unwrap_or_default()
    }

    /// The nodes that have a folder of an agent.
    pub(super) fn folders(&self, agent: AgentId) -> Vec<NodeId> {
        let known = self.known();
        known.removals.folders.iter().filter(|(_, of)| *of == agent).map(|(node, _)| *node).collect()
    }
}

impl Place {
    pub(super) fn makes_folder(&self, agent: AgentId) {
        self.promises().known().removals.folders.insert((self.node(), agent));
    }

    /// Returns whether there was one.
    pub(super) fn removes_folder(&self, agent: AgentId) -> bool {
        self.promises().known().removals.folders.remove(&(self.node(), agent))
    }

    /// This node is about to mark an agent as deleted. It may be killed before it learns that this is saved.
    pub(crate) fn deletes(&self, agent: AgentId, deletion: Deletion) {
        let is_purge = deletion == Deletion::Purge;
        *self.promises().known().removals.deletions.entry(agent).or_default() |= is_purge;
    }

    /// The same, if it removes the agent's rows.
    pub(crate) fn purges(&self, agent: AgentId, journal: Vec<Event>, now: u64) {
        self.promises().known().removals.purges.insert(agent, Purge { at_ms: now, journal });
    }
}
