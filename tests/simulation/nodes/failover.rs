//! A standby of the store takes over that lacks the last moments, while a node dies: what that node had saved last is
//! lost, and nobody can save it again.

use std::time::Duration;

use tokenrail_domain::{AgentId, NodeId, Sequence, TurnNumber};
use tokenrail_ports::testing::LostTail;
use tokio::time::sleep;

use super::Cluster;
use super::node::{Life, Node};
use crate::dice::Dice;

/// How long nothing else goes wrong after it. What a node has shown is known to the others only after it has said so.
const QUIET_MS: u64 = 40_000;

impl Cluster {
    /// Whether nothing else may go wrong now.
    pub(super) fn must_be_quiet(&self) -> bool {
        self.now_ms() < self.quiet_until_ms.get()
    }

    /// Whether the servers of all nodes run and beat.
    fn is_well(&self) -> bool {
        let is_well =
            |life: &Life| life.place().is_some_and(|place| !place.is_stopped() && !place.is_cut_off());
        self.nodes.iter().all(|node| node.life().is_some_and(|life| is_well(&life)))
    }

    /// The standby receives nothing more, and takes over a little later: at the moment at which this node dies. Returns
    /// whether that has happened: then the caller ends the node, before anything else goes on.
    pub(super) async fn may_fail_over(&self, dying: NodeId, dice: &mut Dice) -> bool {
        if !self.loses_tails || self.must_be_quiet() || !self.is_well() {
            return false;
        }
        let behind_ms = dice.between(10, 3000);
        self.quiet_until_ms.set(self.now_ms() + behind_ms + 1);
        self.disk.fall_behind();
        sleep(Duration::from_millis(behind_ms)).await;
        let fails_over = self.is_well();
        if fails_over {
            self.fail_over(dying);
        }
        fails_over
    }

    fn fail_over(&self, dead: NodeId) {
        self.failovers.set(self.failovers.get() + 1);
        self.quiet_until_ms.set(self.now_ms() + QUIET_MS);
        self.lose_late_appends();
        for LostTail { agent, head, starts, deletion, purge } in self.disk.fail_over(dead) {
            if deletion || purge {
                self.lose_removal(agent, deletion);
                continue;
            }
            self.reach("a failover has lost the end of a journal");
            self.promises.has_lost_after(agent, head);
            for life in self.nodes.iter().filter_map(Node::life) {
                life.world.lock().ledgers.remove(&agent);
            }
            for turn in starts {
                self.lose_start(dead, agent, turn);
            }
            self.cut_readers_off(dead, agent, head);
        }
    }

    /// The agent is back. If only its purge is lost, it is purged again.
    fn lose_removal(&self, agent: AgentId, deletion: bool) {
        self.reach(if deletion {
            self.removed.borrow_mut().remove(&agent);
            "a failover has lost a deletion"
        } else {
            "a failover has lost a purge"
        });
        let agents = self.agents.borrow();
        let Some((slot, _)) = agents.iter().find(|(_, id)| **id == agent) else { return };
        let mut told_gone = self.told_gone.borrow_mut();
        told_gone.retain(|told| self.readers_of(*slot).all(|reader| reader != *told));
    }

    /// Nothing shows any more that the turn has begun. If the node comes back, it ends the run: it belongs to no turn.
    fn lose_start(&self, dead: NodeId, agent: AgentId, number: TurnNumber) {
        self.reach("a failover has lost the start of a turn");
        let turns = self.disk.saved_turns(agent);
        let Some(turn) = turns.into_iter().find(|turn| turn.number == number) else { return };
        self.promises.has_lost_start(dead, agent, (turn.run, turn.prompt));
        let node = self.nodes.iter().find(|node| node.id == dead);
        if let Some(life) = node.and_then(Node::life) {
            life.world.lock().processes.remove(&(agent, turn.run));
        }
    }

    /// Only what the readers of other nodes have seen is known there. The others read again from what is left.
    fn cut_readers_off(&self, dead: NodeId, agent: AgentId, head: Sequence) {
        let agents = self.agents.borrow();
        let Some((slot, _)) = agents.iter().find(|(_, id)| **id == agent) else { return };
        let following = self.following.borrow();
        for reader in self.readers_of(*slot) {
            if following.get(&reader).is_none_or(|node| *node == dead) {
                let mut cut_off = self.cut_off.borrow_mut();
                let left = cut_off.entry(reader).or_insert(head.0 as usize);
                *left = (*left).min(head.0 as usize);
            }
        }
    }
}
