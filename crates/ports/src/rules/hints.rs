//! How hints wait to be sent or taken.

use std::collections::HashMap;
use std::mem::take;

use tokenrail_domain::Sequence;

use crate::{Heard, Ring};

/// Hints that wait to be sent or taken, in the order in which they came. Of the heads of one agent, only the highest
/// waits; every other hint waits once. If there are too many, [`Heard::Missed`] waits in their place.
#[derive(Debug)]
pub struct PendingHints {
    hints_max: usize,
    rings: Vec<Ring>,
    /// Where in `rings` the hint about something is.
    places: HashMap<Ring, usize>,
    missed: bool,
}

impl PendingHints {
    /// Has room for `hints_max` hints, and at least for one.
    pub fn new(hints_max: usize) -> Self {
        Self { hints_max: hints_max.max(1), rings: Vec::new(), places: HashMap::new(), missed: false }
    }

    pub fn add(&mut self, ring: Ring) {
        if self.missed {
            return;
        }
        let subject = subject(ring);
        if let Some(waits) = self.places.get(&subject).and_then(|place| self.rings.get_mut(*place)) {
            *waits = later(*waits, ring);
            return;
        }
        if self.hints_max <= self.rings.len() {
            return self.miss();
        }
        self.places.insert(subject, self.rings.len());
        self.rings.push(ring);
    }

    /// Some hints were lost.
    pub fn miss(&mut self) {
        self.take_rings();
        self.missed = true;
    }

    /// Everything that waits. `None` if nothing does.
    pub fn take(&mut self) -> Option<Heard> {
        if take(&mut self.missed) {
            return Some(Heard::Missed);
        }
        let rings = self.take_rings();
        (!rings.is_empty()).then_some(Heard::Rung(rings))
    }

    /// Lets something wait again that was taken, before what has come since.
    pub fn put_back(&mut self, taken: Heard) {
        match taken {
            Heard::Missed => self.miss(),
            Heard::Rung(rings) => {
                let newer = self.take_rings();
                for ring in rings.into_iter().chain(newer) {
                    self.add(ring);
                }
            }
        }
    }

    fn take_rings(&mut self) -> Vec<Ring> {
        self.places.clear();
        take(&mut self.rings)
    }
}

/// What a hint is about: two hints with the same subject are one.
fn subject(ring: Ring) -> Ring {
    match ring {
        Ring::Head { agent, head: _ } => Ring::Head { agent, head: Sequence::START },
        other => other,
    }
}

/// The hint that stays of two about the same subject.
fn later(waits: Ring, ring: Ring) -> Ring {
    match (waits, ring) {
        (Ring::Head { agent, head }, Ring::Head { agent: _, head: other }) => {
            Ring::Head { agent, head: head.max(other) }
        }
        _ => waits,
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::{AgentId, NodeId, Timestamp};

    use super::*;

    fn agent(n: u8) -> AgentId {
        AgentId::new(Timestamp(1), [n; 10])
    }

    fn head(n: u8, head: u64) -> Ring {
        Ring::Head { agent: agent(n), head: Sequence(head) }
    }

    fn of(hints_max: usize, rings: &[Ring]) -> PendingHints {
        let mut hints = PendingHints::new(hints_max);
        for ring in rings {
            hints.add(*ring);
        }
        hints
    }

    #[test]
    fn each_subject_waits_once_and_in_order() {
        let rings = [
            head(1, 1),
            Ring::Changed(agent(1)),
            head(2, 7),
            head(1, 3),
            head(1, 2),
            Ring::Changed(agent(1)),
        ];
        let mut hints = of(3, &rings);
        let waits = vec![head(1, 3), Ring::Changed(agent(1)), head(2, 7)];
        assert_eq!(hints.take(), Some(Heard::Rung(waits)));
        assert_eq!(hints.take(), None);
        hints.add(head(1, 1));
        assert_eq!(hints.take(), Some(Heard::Rung(vec![head(1, 1)])), "it was taken, so it is new");
    }

    #[test]
    fn kinds_and_nodes_are_different_subjects() {
        let rings = [
            Ring::Created(agent(1)),
            Ring::Changed(agent(1)),
            Ring::Deleted(agent(1)),
            head(1, 1),
            Ring::Errand(NodeId(1)),
            Ring::Errand(NodeId(2)),
            Ring::Letter(NodeId(1)),
        ];
        assert_eq!(of(7, &rings).take(), Some(Heard::Rung(rings.to_vec())));
    }

    #[test]
    fn too_many_become_missed_once() {
        let mut hints = of(2, &[head(1, 1), head(2, 1), head(3, 1), head(4, 1)]);
        assert_eq!(hints.take(), Some(Heard::Missed));
        assert_eq!(hints.take(), None);
        hints.add(head(5, 1));
        assert_eq!(hints.take(), Some(Heard::Rung(vec![head(5, 1)])));
    }

    #[test]
    fn what_is_put_back_comes_first_and_stays_within_the_bound() {
        let mut hints = of(3, &[head(1, 5), head(2, 1)]);
        let taken = hints.take().unwrap();
        hints.add(head(3, 1));
        hints.add(head(1, 4));
        hints.put_back(taken.clone());
        assert_eq!(hints.take(), Some(Heard::Rung(vec![head(1, 5), head(2, 1), head(3, 1)])));
        hints.add(head(3, 1));
        hints.add(head(4, 1));
        hints.put_back(taken);
        assert_eq!(hints.take(), Some(Heard::Missed));
        hints.add(head(1, 1));
        hints.put_back(Heard::Missed);
        assert_eq!(hints.take(), Some(Heard::Missed));
    }
}
