//! The queue of the writer. The writes of a flood and all others take turns, so that neither starves the other. While
//! others write, a flood pauses after each of its transactions, for a multiple of the time that the transaction took:
//! it gets the remaining capacity. So does the work in the background, such as packing ended turns.
//!
//! A flood is an agent that makes one large write after the other. Many such agents at the same time are a backlog,
//! for example after the disk stalled: they share transactions and do not pause.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tokenrail_domain::AgentId;
use tokio::sync::mpsc;

use crate::planted;
use crate::sqlite::command::{Task, WriterOrder};
use crate::sqlite::config::SqliteLimits;

/// A large write belongs to a flood if the same agent made another one within this time.
const FLOOD_GAP: Duration = Duration::from_secs(1);
/// If more agents than this make large writes at the same time, they are a backlog.
const FEW_FLOODS: usize = 2;
/// Only if more agents than this are known, those are forgotten whose last large write is long ago.
const REMEMBERED: usize = 64;

/// The waiting tasks, oldest first. Small and large writes may overtake each other. A caller that needs an order
/// sends its next command only after `Ok`.
pub(super) struct Queue {
    limits: SqliteLimits,
    small: VecDeque<Box<dyn Task>>,
    /// The writes of a flood, and of the work in the background.
    large: VecDeque<Box<dyn Task>>,
    /// The last transaction contained small writes.
    large_is_next: bool,
    /// When each agent made its last large write.
    large_at: HashMap<AgentId, Instant>,
    /// The agents that flood: at most [`FEW_FLOODS`].
    flooding: Vec<AgentId>,
    /// The two agents that made the last small writes, and when.
    wrote: [Option<(AgentId, Instant)>; 2],
    pauses_until: Option<Instant>,
    log: LogNews,
    pub(super) stop: bool,
}

/// Messages about the log that the writer has not handled yet.
#[derive(Default)]
struct LogNews {
    cut_log: bool,
    checkpoint_done: bool,
}

/// The tasks of one transaction.
#[derive(Default)]
pub(super) struct WriteGroup {
    pub(super) tasks: Vec<Box<dyn Task>>,
    pub(super) empties_log: bool,
    /// It belongs to a flood or to the work in the background, which pause afterwards.
    pauses: bool,
}

impl Queue {
    pub(super) fn new(limits: SqliteLimits) -> Self {
        Self {
            limits,
            small: VecDeque::new(),
            large: VecDeque::new(),
            large_is_next: false,
            large_at: HashMap::new(),
            flooding: Vec::new(),
            wrote: [None; 2],
            pauses_until: None,
            log: LogNews::default(),
            stop: false,
        }
    }

    /// Adds what has been sent, as long as there is room.
    pub(super) fn add_all(&mut self, orders: &mut mpsc::Receiver<WriterOrder>) {
        while !self.is_full()
            && let Ok(order) = orders.try_recv()
        {
            self.add(order);
        }
    }

    pub(super) fn add(&mut self, order: WriterOrder) {
        match order {
            WriterOrder::Task(task) if task.is_in_background() || self.is_of_a_flood(&*task) => {
                self.large.push_back(task);
            }
            WriterOrder::Task(task) => {
                if let Some(agent) = task.agent() {
                    let other = self.wrote.into_iter().flatten().find(|(other, _)| *other != agent);
                    self.wrote = [Some((agent, Instant::now())), other];
                }
                self.small.push_back(task);
            }
            WriterOrder::CutLog => self.log.cut_log = true,
            WriterOrder::CheckpointDone => self.log.checkpoint_done = true,
            WriterOrder::Stop => self.stop = true,
        }
    }

    /// Whether this is a large write and the same agent made another one just before. The first large write goes with
    /// the small ones: it may be a single long message.
    ///
    /// A command of no agent that fills a transaction, such as a message with images, goes alone too: it would keep the
    /// small writes in its transaction waiting.
    fn is_of_a_flood(&mut self, task: &dyn Task) -> bool {
        if task.agent().is_none() && self.limits.commit_max_bytes <= task.bytes() {
            return true;
        }
        let Some(agent) = task.agent().filter(|_| self.limits.flood_bytes <= task.bytes()) else {
            return false;
        };
        let now = Instant::now();
        if REMEMBERED <= self.large_at.len() && self.large_at.len() == self.large_at.capacity() {
            self.large_at.retain(|_, at| now.duration_since(*at) < FLOOD_GAP);
        }
        self.large_at.insert(agent, now).is_some_and(|before| now.duration_since(before) < FLOOD_GAP)
    }

    /// Whether the queue is empty and the log is to be restarted.
    pub(super) fn take_cut_log(&mut self) -> bool {
        std::mem::take(&mut self.log.cut_log) && self.is_empty()
    }

    /// Whether the requested checkpoint is done.
    pub(super) fn take_checkpoint_done(&mut self) -> bool {
        std::mem::take(&mut self.log.checkpoint_done)
    }

    /// Whether the queue accepts no more messages for now.
    pub(super) fn is_full(&self) -> bool {
        self.stop || self.limits.queued_commands <= self.small.len() + self.large.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    /// Whether two agents have just queued small writes, so that others are probably about to.
    pub(super) fn expects_more(&self) -> bool {
        let moment = Duration::from_micros(u64::from(self.limits.gather_us));
        let just_wrote =
            |wrote: &Option<(AgentId, Instant)>| wrote.is_some_and(|(_, at)| at.elapsed() < moment);
        self.wrote.iter().all(just_wrote)
    }

    /// How long to wait for messages at most; `None` if there is something to write now. If `holds` is given, large
    /// writes wait until then.
    pub(super) fn wait(&self, holds: Option<Instant>) -> Option<Wait> {
        if !self.small.is_empty() || !self.large.is_empty() && !self.is_held(holds.is_some()) {
            return None;
        }
        let until = self.pauses_until.max(holds).filter(|_| !self.large.is_empty());
        Some(until.map_or(Wait::ForOrders, Wait::Until))
    }

    /// Records that the group was written, and how long that took.
    pub(super) fn written(&mut self, group: &WriteGroup, took: Duration) {
        if group.pauses {
            // A pause is not longer than others count as writing.
            let pause = (took * self.limits.flood_rest).min(self.recent());
            self.pauses_until = self.others_write().then(|| Instant::now() + pause);
        }
    }

    fn others_write(&self) -> bool {
        let recent = self.recent();
        let is_other = |agent: &AgentId| !self.flooding.contains(agent);
        self.wrote.iter().flatten().any(|(agent, wrote)| is_other(agent) && wrote.elapsed() < recent)
    }

    fn recent(&self) -> Duration {
        Duration::from_millis(u64::from(self.limits.flood_yield_ms))
    }

    /// The next group: small and large writes take turns.
    pub(super) fn next(&mut self, holds: bool) -> WriteGroup {
        let takes_large = !self.large.is_empty()
            && (planted::flood_goes_first()
                || !self.is_held(holds) && (self.large_is_next || self.small.is_empty()));
        self.large_is_next = !takes_large;
        let of_agents = self.large.iter().filter(|task| !task.is_in_background()).count();
        let is_flood = takes_large && of_agents <= FEW_FLOODS;
        if is_flood {
            self.flooding = self.large.iter().filter_map(|task| task.agent()).collect();
        }
        let jobs = if is_flood && self.others_write() { 1 } else { self.limits.commit_max_jobs.max(1) };
        let most_bytes = self.limits.commit_max_bytes.max(1);
        let queue = if takes_large { &mut self.large } else { &mut self.small };
        let (mut group, mut bytes) = (WriteGroup { pauses: is_flood, ..WriteGroup::default() }, 0);
        while group.tasks.len() < jobs
            && bytes < most_bytes
            && let Some(task) = queue.pop_front()
        {
            bytes += task.bytes();
            group.empties_log |= task.empties_log();
            group.tasks.push(task);
        }
        group
    }

    /// Whether large writes have to wait. They do not if the queue is full or the store closes: they would keep
    /// others from queuing, or the store from closing.
    fn is_held(&self, holds: bool) -> bool {
        let pauses = || self.pauses_until.is_some_and(|until| Instant::now() < until);
        (holds || pauses()) && !self.is_full()
    }
}

/// What the writer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    ForOrders,
    /// For messages, until then.
    Until(Instant),
}

#[cfg(test)]
mod tests;
