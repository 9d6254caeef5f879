//! What is to be read of the journals of other nodes' agents.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{AgentId, Sequence};
use tokio::sync::Notify;

use crate::tails::Tails;

/// Agents in one query.
const AGENTS_MAX: usize = 512;

/// The journals of other nodes' agents that are to be read.
#[derive(Default)]
pub(crate) struct Wanted {
    /// How far the journal of each agent reaches.
    heads: Mutex<BTreeMap<AgentId, Sequence>>,
    /// The last agent of which something was read.
    last: Mutex<Option<AgentId>>,
    pub(crate) woken: Notify,
}

impl Wanted {
    /// Notes that the journal of an agent reaches to `head`.
    ///
    /// The next step is `gather` in `use_cases/nodes/gatherer.rs`, which waits for `woken` and reads the journal.
    pub(crate) fn want(&self, agent: AgentId, head: Sequence) {
        let mut wanted = self.wanted();
        let known = wanted.entry(agent).or_insert(head);
        *known = head.max(*known);
        drop(wanted);
        self.woken.notify_one();
    }

    /// Takes the agents that are followed here and behind, each with the number after which to read: first those that
    /// the last read has left out. Those that nobody follows are forgotten.
    pub(crate) fn take(&self, tails: &Tails) -> Vec<(AgentId, Sequence)> {
        let mut wanted = self.wanted();
        wanted.retain(|agent, head| {
            let tail = tails.get(*agent).filter(|tail| 0 < tail.followers());
            tail.is_some_and(|tail| tail.state().head < *head)
        });
        let head_here = |agent: &AgentId| tails.get(*agent).map(|tail| tail.state().head);
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = in_turn(&wanted, last).take(AGENTS_MAX);
        agents.filter_map(|agent| Some((agent, head_here(&agent)?))).collect()
    }

    /// The next read begins with the agent after this one. Otherwise, agents that always have something new would keep
    /// the others out.
    pub(crate) fn go_on_after(&self, agent: AgentId) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent);
    }

    /// Whether a hint has told of a journal that reaches this far, and it is not read yet.
    pub(crate) fn is_wanted(&self, agent: AgentId, head: Sequence) -> bool {
        self.wanted().get(&agent).is_some_and(|wanted| head <= *wanted)
    }

    pub(crate) fn forget(&self, agent: AgentId) {
        self.wanted().remove(&agent);
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<AgentId, Sequence>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All agents, beginning with the one after `last`.
fn in_turn(
    wanted: &BTreeMap<AgentId, Sequence>,
    last: Option<AgentId>,
) -> impl Iterator<Item = AgentId> + '_ {
    let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
    let before = wanted.iter().take_while(move |(agent, _)| last.is_some_and(|last| **agent <= last));
    wanted.range((begin, Bound::Unbounded)).chain(before).map(|(agent, _)| *agent)
}

#[cfg(test)]
mod tests;
