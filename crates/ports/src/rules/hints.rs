//! How hints wait to be sent or taken.

use std::collections::HashMap;
use std::mem::take;

use tokenrail_domain::Sequence;

use crate::{Heard, Hint};

/// Hints that wait to be sent or taken, in the order in which they came. Of the heads of one agent, only the highest
/// waits; every other hint waits once. If there are too many, [`Heard::Missed`] waits in their place.
#[derive(Debug)]
pub struct PendingHints {
    hints_max: usize,
    hints: Vec<Hint>,
    /// Where in `hints` the hint about something is.
    places: HashMap<Hint, usize>,
    missed: bool,
}

impl PendingHints {
    /// Has room for `hints_max` hints, and at least for one.
    pub fn new(hints_max: usize) -> Self {
        Self { hints_max: hints_max.max(1), hints: Vec::new(), places: HashMap::new(), missed: false }
    }

    pub fn add(&mut self, hint: Hint) {
        if self.missed {
            return;
        }
        let subject = subject(hint);
        if let Some(waits) = self.places.get(&subject).and_then(|place| self.hints.get_mut(*place)) {
            *waits = later(*waits, hint);
            return;
        }
        if self.hints_max <= self.hints.len() {
            return self.miss();
        }
        self.places.insert(subject, self.hints.len());
        self.hints.push(hint);
    }

    /// Some hints were lost.
    pub fn miss(&mut self) {
        self.take_hints();
        self.missed = true;
    }

    /// Everything that waits. `None` if nothing does.
    pub fn take(&mut self) -> Option<Heard> {
        if take(&mut self.missed) {
            return Some(Heard::Missed);
        }
        let hints = self.take_hints();
        (!hints.is_empty()).then_some(Heard::Hints(hints))
    }

    /// Lets something wait again that was taken, before what has come since.
    pub fn put_back(&mut self, taken: Heard) {
        match taken {
            Heard::Missed => self.miss(),
            Heard::Hints(hints) => {
                let newer = self.take_hints();
                for hint in hints.into_iter().chain(newer) {
                    self.add(hint);
                }
            }
        }
    }

    fn take_hints(&mut self) -> Vec<Hint> {
        self.places.clear();
        take(&mut self.hints)
    }
}

/// What a hint is about: two hints with the same subject are one.
fn subject(hint: Hint) -> Hint {
    match hint {
        Hint::Head { agent, head: _ } => Hint::Head { agent, head: Sequence::START },
        other => other,
    }
}

/// The hint that stays of two about the same subject.
fn later(waits: Hint, hint: Hint) -> Hint {
    match (waits, hint) {
        (Hint::Head { agent, head }, Hint::Head { agent: _, head: other }) => {
            Hint::Head { agent, head: head.max(other) }
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

    fn head(n: u8, head: u64) -> Hint {
        Hint::Head { agent: agent(n), head: Sequence(head) }
    }

    fn of(hints_max: usize, hints: &[Hint]) -> PendingHints {
        let mut pending = PendingHints::new(hints_max);
        for hint in hints {
            pending.add(*hint);
        }
        pending
    }

    #[test]
    fn each_subject_waits_once_and_in_order() {
        let hints = [
            head(1, 1),
            Hint::Changed(agent(1)),
            head(2, 7),
            head(1, 3),
            head(1, 2),
            Hint::Changed(agent(1)),
        ];
        let mut pending = of(3, &hints);
        let waits = vec![head(1, 3), Hint::Changed(agent(1)), head(2, 7)];
        assert_eq!(pending.take(), Some(Heard::Hints(waits)));
        assert_eq!(pending.take(), None);
        pending.add(head(1, 1));
        assert_eq!(pending.take(), Some(Heard::Hints(vec![head(1, 1)])), "it was taken, so it is new");
    }

    #[test]
    fn kinds_and_nodes_are_different_subjects() {
        let hints = [
            Hint::Created(agent(1)),
            Hint::Changed(agent(1)),
            Hint::Deleted(agent(1)),
            head(1, 1),
            Hint::Errand(NodeId(1)),
            Hint::Errand(NodeId(2)),
            Hint::Letter(NodeId(1)),
        ];
        assert_eq!(of(7, &hints).take(), Some(Heard::Hints(hints.to_vec())));
    }

    #[test]
    fn too_many_become_missed_once() {
        let mut hints = of(2, &[head(1, 1), head(2, 1), head(3, 1), head(4, 1)]);
        assert_eq!(hints.take(), Some(Heard::Missed));
        assert_eq!(hints.take(), None);
        hints.add(head(5, 1));
        assert_eq!(hints.take(), Some(Heard::Hints(vec![head(5, 1)])));
    }

    #[test]
    fn what_is_put_back_comes_first_and_stays_within_the_bound() {
        let mut hints = of(3, &[head(1, 5), head(2, 1)]);
        let taken = hints.take().unwrap();
        hints.add(head(3, 1));
        hints.add(head(1, 4));
        hints.put_back(taken.clone());
        assert_eq!(hints.take(), Some(Heard::Hints(vec![head(1, 5), head(2, 1), head(3, 1)])));
        hints.add(head(3, 1));
        hints.add(head(4, 1));
        hints.put_back(taken);
        assert_eq!(hints.take(), Some(Heard::Missed));
        hints.add(head(1, 1));
        hints.put_back(Heard::Missed);
        assert_eq!(hints.take(), Some(Heard::Missed));
    }
}
