//! Which nodes have been silent for too long. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenrail_domain::NodeId;
use tokenrail_ports::{Node, NodeState, Pulse};
use tokio::time::Instant;

use crate::limits::NodeLimits;
use crate::planted::{self, Bug};

/// The pulse of each other node, and since when it has been the same. Only this node's own clock counts, and only while
/// it has read without a gap: after an outage of the store, or after this process was stopped, all nodes are given the
/// whole time again.
#[derive(Debug)]
pub(super) struct Silence {
    limits: NodeLimits,
    pulses: BTreeMap<NodeId, (Pulse, Instant)>,
    last_read: Option<Instant>,
}

impl Silence {
    pub(super) fn new(limits: NodeLimits) -> Self {
        Self { limits, pulses: BTreeMap::new(), last_read: None }
    }

    /// A read has failed.
    pub(super) fn interrupted(&mut self) {
        self.last_read = None;
        self.pulses.clear();
    }

    /// Takes what was read at `now`, and returns the nodes that are to be declared lost.
    pub(super) fn read(&mut self, nodes: &[Node], me: NodeId, now: Instant) -> Vec<(NodeId, Pulse)> {
        let gap = 2 * self.limits.beat;
        if self.last_read.is_some_and(|last| gap < now.duration_since(last)) {
            self.pulses.clear();
        }
        self.last_read = Some(now);
        self.pulses.retain(|id, _| nodes.iter().any(|node| node.id == *id));
        let mut silent = Vec::new();
        for node in nodes.iter().filter(|node| node.id != me) {
            let (pulse, since) = self.pulses.entry(node.id).or_insert((node.pulse, now));
            if *pulse != node.pulse {
                (*pulse, *since) = (node.pulse, now);
            }
            if patience(&self.limits, node.state)
                .map(|patience| planted::instead(Bug::LostByOneRead, patience, || Duration::from_millis(1)))
                .is_some_and(|patience| patience <= now.duration_since(*since))
            {
                silent.push((node.id, node.pulse));
            }
        }
        silent
    }
}

/// How long a node in this state may be silent.
fn patience(limits: &NodeLimits, state: NodeState) -> Option<Duration> {
    match state {
        NodeState::Alive => Some(limits.lost_after),
        NodeState::Away => Some(limits.away),
        NodeState::Lost | NodeState::Gone => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);

    fn node(id: u64, state: NodeState, beat: u64) -> Node {
        let pulse = Pulse { incarnation: 1, beat };
        Node { id: NodeId(id), name: "a".into(), version: "1".into(), state, types: Vec::new(), pulse }
    }

    fn limits() -> NodeLimits {
        NodeLimits { beat: Duration::from_secs(3), ..NodeLimits::default() }
    }

    /// The seconds after which the node with number 2 is declared lost, if it beats as `beats` says.
    fn declared(state: NodeState, reads: impl Fn(u64) -> bool, beats: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut silence, begin) = (Silence::new(limits()), Instant::now());
        (0..1000).step_by(3).find(|second| {
            if !reads(*second) {
                return false;
            }
            let now = begin + Duration::from_secs(*second);
            let nodes = [node(1, NodeState::Alive, 0), node(2, state, beats(*second))];
            !silence.read(&nodes, ME, now).is_empty()
        })
    }

    #[test]
    fn a_node_is_declared_lost_after_the_whole_time_and_not_before() {
        assert_eq!(declared(NodeState::Alive, |_| true, |_| 0), Some(30));
        assert_eq!(declared(NodeState::Away, |_| true, |_| 0), Some(300));
        assert_eq!(declared(NodeState::Alive, |_| true, |second| second / 27), None);
        assert_eq!(declared(NodeState::Lost, |_| true, |_| 0), None);
    }

    #[test]
    fn a_gap_in_the_reads_gives_everyone_the_whole_time_again() {
        let gap = |second: u64| !(9..18).contains(&second);
        assert_eq!(declared(NodeState::Alive, gap, |_| 0), Some(48));
        let (mut silence, begin) = (Silence::new(limits()), Instant::now());
        let nodes = [node(2, NodeState::Alive, 0)];
        for second in (0..=27).step_by(3) {
            assert!(silence.read(&nodes, ME, begin + Duration::from_secs(second)).is_empty());
        }
        silence.interrupted();
        assert!(silence.read(&nodes, ME, begin + Duration::from_secs(30)).is_empty());
    }

    #[test]
    fn a_node_never_declares_itself_lost() {
        let (mut silence, begin) = (Silence::new(limits()), Instant::now());
        for second in (0..100).step_by(3) {
            let own = [node(1, NodeState::Alive, 0)];
            assert!(silence.read(&own, ME, begin + Duration::from_secs(second)).is_empty());
        }
    }
}
