//! What a failover loses of the end of an agent: that it was deleted, or that its rows were removed. Only what the dead
//! node had saved is lost: the others save again what they had saved.

use std::collections::{BTreeMap, BTreeSet};

use tokenrail_domain::{AgentId, NodeId, Sequence, Timestamp};

use super::State;
use super::failover::LostTail;
use super::shelf::Shelf;
use crate::{Deletion, Epoch};

/// What the nodes have removed since the standby receives nothing more.
#[derive(Default)]
pub(super) struct Removals {
    is_behind: bool,
    of: BTreeMap<AgentId, Removal>,
}

#[derive(Default)]
struct Removal {
    deleted_by: BTreeSet<NodeId>,
    /// When it was deleted, and whether it is to be purged.
    deleted: Option<(Timestamp, bool)>,
    purged_by: Option<NodeId>,
    /// How far the journal reached, and how many turns there were.
    size: (Sequence, usize),
    epoch: u64,
}

fn size(of: &Shelf) -> (Sequence, usize) {
    (of.agent.head, of.turns.len())
}

impl Removals {
    /// The standby receives nothing more.
    pub(super) fn fall_behind(&mut self) {
        *self = Self { is_behind: true, ..Self::default() };
    }
}

impl State {
    fn removal(&mut self, agent: AgentId) -> Option<&mut Removal> {
        let of = self.shelves.get(&agent).filter(|_| self.cluster.removals.is_behind)?;
        let (size, epoch) = (size(of), of.epoch.0);
        let found = self.cluster.removals.of.entry(agent).or_default();
        (found.size, found.epoch) = (size, epoch);
        Some(found)
    }

    /// A node is about to delete an agent.
    pub(super) fn note_delete(&mut self, agent: AgentId, at: Timestamp, deletion: Deletion, node: NodeId) {
        if let Some(removal) = self.removal(agent) {
            removal.deleted_by.insert(node);
            let before = removal.deleted.map_or((at, false), |before| before);
            removal.deleted = Some((before.0, before.1 || deletion == Deletion::Purge));
        }
    }

    /// A node is about to remove the rows of an agent.
    pub(super) fn note_purge(&mut self, agent: AgentId, node: NodeId) {
        if let Some(removal) = self.removal(agent) {
            removal.purged_by = Some(node);
        }
    }

    /// The standby has taken over. Agents that had ended, and whose deletion or purge is lost, are back.
    pub(super) fn lose_removals(
        &mut self,
        standby: &BTreeMap<AgentId, Shelf>,
        dead: NodeId,
    ) -> Vec<LostTail> {
        let Removals { of: removals, .. } = std::mem::take(&mut self.cluster.removals);
        let mut lost = Vec::new();
        for (agent, removal) in removals {
            let Some(was) = standby.get(&agent) else { continue };
            let is_by_others = removal.purged_by.is_some_and(|by| by != dead);
            if is_by_others || removal.size != size(was) || !was.open_turns().is_empty() {
                continue;
            }
            let is_purge = removal.purged_by.is_some();
            let is_deletion =
                !removal.deleted_by.is_empty() && removal.deleted_by.iter().all(|by| *by == dead);
            if !is_deletion && !is_purge {
                continue;
            }
            let mut back = Shelf { epoch: Epoch(removal.epoch + 1), ..was.clone() };
            if let Some((at, purge)) = removal.deleted.filter(|_| !is_deletion) {
                back.to_purge |= purge;
                back.agent.deleted_at.get_or_insert(at);
            }
            let head = back.agent.head;
            self.shelves.insert(agent, back);
            self.purged.remove(&agent);
            self.cluster.leftovers.retain(|(_, of)| *of != agent);
            self.touch(agent);
            lost.push(LostTail { agent, head, starts: Vec::new(), deletion: is_deletion, purge: is_purge });
        }
        lost
    }
}
