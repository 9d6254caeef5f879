//! What is known of agents, of as many as there is room for.

use std::collections::BTreeMap;

use tokenrail_domain::AgentId;

/// Something about each agent that was used last. If there are more than a bound, the one that was not used for the
/// longest time is forgotten.
#[derive(Debug)]
pub(super) struct Recent<T> {
    max: usize,
    entries: BTreeMap<AgentId, (u64, T)>,
    /// The agents in the order of their last use.
    order: BTreeMap<u64, AgentId>,
    uses: u64,
}

impl<T> Recent<T> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, entries: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    pub(super) fn get(&self, agent: AgentId) -> Option<&T> {
        self.entries.get(&agent).map(|(_, entry)| entry)
    }

    /// Like [`Recent::get`], and counts as a use.
    pub(super) fn touch(&mut self, agent: AgentId) -> Option<&mut T> {
        let (used, entry) = self.entries.get_mut(&agent)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, agent);
        Some(entry)
    }

    pub(super) fn insert(&mut self, agent: AgentId, entry: T) {
        self.remove(agent);
        self.uses += 1;
        self.order.insert(self.uses, agent);
        self.entries.insert(agent, (self.uses, entry));
        if self.max < self.entries.len()
            && let Some((_, longest_ago)) = self.order.pop_first()
        {
            self.entries.remove(&longest_ago);
        }
    }

    pub(super) fn remove(&mut self, agent: AgentId) {
        if let Some((used, _)) = self.entries.remove(&agent) {
            self.order.remove(&used);
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use tokenrail_domain::Timestamp;

    use super::*;

    fn id(number: i64) -> AgentId {
        AgentId::new(Timestamp(number), [0; 10])
    }

    #[test]
    fn the_one_that_was_not_used_for_the_longest_time_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.insert(id(1), "a");
        recent.insert(id(2), "b");
        assert_eq!(recent.touch(id(1)), Some(&mut "a"));
        recent.insert(id(3), "c");
        assert_eq!([1, 2, 3].map(|number| recent.get(id(number)).copied()), [Some("a"), None, Some("c")]);
        recent.insert(id(1), "d");
        recent.insert(id(4), "e");
        assert_eq!([1, 3, 4].map(|number| recent.get(id(number)).copied()), [Some("d"), None, Some("e")]);
        recent.remove(id(4));
        recent.clear();
        assert_eq!((recent.entries.len(), recent.order.len()), (0, 0));
    }
}
