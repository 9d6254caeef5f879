//! The queue of a writer.

use std::collections::{HashSet, VecDeque};

use super::WriterOrder;
use super::group::WaitingAppend;
use crate::postgres::config::PostgresLimits;

/// The waiting appends, oldest first.
pub(super) struct Queue {
    limits: PostgresLimits,
    waiting: VecDeque<Box<WaitingAppend>>,
    pub(super) stop: bool,
}

impl Queue {
    pub(super) fn new(limits: &PostgresLimits) -> Self {
        Self { limits: limits.clone(), waiting: VecDeque::new(), stop: false }
    }

    pub(super) fn add(&mut self, order: WriterOrder) {
        match order {
            WriterOrder::Append(append) => self.waiting.push_back(append),
            WriterOrder::Stop => self.stop = true,
        }
    }

    /// Whether the queue accepts no more messages for now.
    pub(super) fn is_full(&self) -> bool {
        self.stop || self.limits.queued_appends <= self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next group: the oldest append of each agent, within the limits. Further appends of an agent stay, in their
    /// order.
    pub(super) fn next(&mut self) -> Vec<WaitingAppend> {
        let (mut group, mut agents, mut bytes) = (Vec::new(), HashSet::new(), 0);
        let mut later = VecDeque::new();
        while let Some(append) = self.waiting.pop_front() {
            let more = append.prepared.bytes();
            let has_room = group.is_empty()
                || group.len() < self.limits.statement_agents && bytes + more <= self.limits.statement_bytes;
            // What follows one that stays, stays too, if it is of the same agent.
            if agents.insert(append.prepared.agent()) && has_room {
                bytes += more;
                group.push(*append);
            } else {
                later.push_back(append);
            }
        }
        self.waiting = later;
        group
    }
}

#[cfg(test)]
mod tests;
