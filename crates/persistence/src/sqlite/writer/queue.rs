//! The queue of the writer. The writes of a flood and all others take turns, so that neither starves the other. While
//! others write, a flood pauses after each of its transactions, for a multiple of the time that the transaction took:
//! it gets the remaining capacity.
//!
//! A flood is an agent that makes one large write after the other. Many such agents at the same time are a backlog,
//! for example after the disk stalled: they share transactions and do not pause.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tokenrail_domain::AgentId;

use crate::sqlite::command::{Task, WriterOrder};
use crate::sqlite::config::StoreLimits;
use crate::sqlite::planted;

/// A large write belongs to a flood if the same agent made another one within this time.
const FLOOD_GAP: Duration = Duration::from_secs(1);
/// If more agents than this make large writes at the same time, they are a backlog.
const FEW_FLOODS: usize = 2;
/// Only if more agents than this are known, those are forgotten whose last large write is long ago.
const REMEMBERED: usize = 64;

/// The waiting tasks, oldest first. Small and large writes may overtake each other. A caller that needs an order
/// sends its next command only after `Ok`.
pub(super) struct Queue {
    limits: StoreLimits,
    small: VecDeque<Box<dyn Task>>,
    large: VecDeque<Box<dyn Task>>,
    /// The last transaction contained small writes.
    large_is_next: bool,
    /// When each agent made its last large write.
    large_at: HashMap<AgentId, Instant>,
    /// The agents that flood: at most [`FEW_FLOODS`].
    flooding: Vec<AgentId>,
    /// The two agents that made the last small writes, and when.
    wrote: [Option<(AgentId, Instant)>; 2],
    rests_until: Option<Instant>,
    log: LogNews,
    pub(super) stop: bool,
}

/// Messages about the log that the writer has not handled yet.
#[derive(Default)]
struct LogNews {
    cut_log: bool,
    taken_over: bool,
}

/// The tasks of one transaction.
#[derive(Default)]
pub(super) struct WriteGroup {
    pub(super) tasks: Vec<Box<dyn Task>>,
    pub(super) empties_log: bool,
    /// It belongs to a flood, which pauses afterwards.
    rests: bool,
}

impl Queue {
    pub(super) fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            small: VecDeque::new(),
            large: VecDeque::new(),
            large_is_next: false,
            large_at: HashMap::new(),
            flooding: Vec::new(),
            wrote: [None; 2],
            rests_until: None,
            log: LogNews::default(),
            stop: false,
        }
    }

    pub(super) fn add(&mut self, order: WriterOrder) {
        match order {
            WriterOrder::Task(task) if self.is_of_a_flood(&*task) => self.large.push_back(task),
            WriterOrder::Task(task) => {
                if let Some(agent) = task.agent() {
                    let other = self.wrote.into_iter().flatten().find(|(other, _)| *other != agent);
                    self.wrote = [Some((agent, Instant::now())), other];
                }
                self.small.push_back(task);
            }
            WriterOrder::CutLog => self.log.cut_log = true,
            WriterOrder::TakenOver => self.log.taken_over = true,
            WriterOrder::Stop => self.stop = true,
        }
    }

    /// Whether this is a large write and the same agent made another one just before. The first large write goes with
    /// the small ones: it may be a single long message.
    fn is_of_a_flood(&mut self, task: &dyn Task) -> bool {
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
    pub(super) fn take_taken_over(&mut self) -> bool {
        std::mem::take(&mut self.log.taken_over)
    }

    /// Whether the queue accepts no more messages for now.
    pub(super) fn is_full(&self) -> bool {
        self.stop || self.limits.queued_commands <= self.small.len() + self.large.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    /// How long to wait for messages at most; `None` if there is something to write now. If `holds` is given, large
    /// writes wait until then.
    pub(super) fn wait(&self, holds: Option<Instant>) -> Option<Wait> {
        if !self.small.is_empty() || !self.large.is_empty() && !self.is_held(holds.is_some()) {
            return None;
        }
        let until = self.rests_until.max(holds).filter(|_| !self.large.is_empty());
        Some(until.map_or(Wait::ForOrders, Wait::Until))
    }

    /// Records that the group was written, and how long that took.
    pub(super) fn written(&mut self, group: &WriteGroup, took: Duration) {
        if group.rests {
            // A pause is not longer than others count as writing.
            let rest = (took * self.limits.flood_rest).min(self.recent());
            self.rests_until = self.others_write().then(|| Instant::now() + rest);
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
        let is_flood = takes_large && self.large.len() <= FEW_FLOODS;
        if is_flood {
            self.flooding = self.large.iter().filter_map(|task| task.agent()).collect();
        }
        let jobs = if is_flood && self.others_write() { 1 } else { self.limits.commit_max_jobs.max(1) };
        let most_bytes = self.limits.commit_max_bytes.max(1);
        let queue = if takes_large { &mut self.large } else { &mut self.small };
        let (mut group, mut bytes) = (WriteGroup { rests: is_flood, ..WriteGroup::default() }, 0);
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
        let rests = || self.rests_until.is_some_and(|until| Instant::now() < until);
        (holds || rests()) && !self.is_full()
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
mod tests {
    use rusqlite::Connection;
    use tokenrail_domain::Timestamp;
    use tokenrail_ports::StoreError;

    use super::*;
    use crate::sqlite::database::reserve::ReserveUse;

    const FLOODING: u8 = 1;
    const QUIET: u8 = 2;

    /// So many bytes, of that agent.
    struct Sized(usize, u8);

    impl Task for Sized {
        fn bytes(&self) -> usize {
            self.0
        }
        fn agent(&self) -> Option<AgentId> {
            Some(agent(self.1))
        }
        fn empties_log(&self) -> bool {
            false
        }
        fn reserve_use(&self) -> ReserveUse {
            ReserveUse::None
        }
        fn run(&mut self, _: &Connection) -> Result<(), StoreError> {
            Ok(())
        }
        fn answer(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    fn agent(number: u8) -> AgentId {
        AgentId::new(Timestamp(0), [number; 10])
    }

    /// One of 10 bytes or more is large; a transaction takes 30 or three, and five may wait. The flooding agent has
    /// just made another large write.
    fn queue(sizes: &[usize]) -> Queue {
        let limits = StoreLimits {
            flood_bytes: 10,
            commit_max_bytes: 30,
            commit_max_jobs: 3,
            queued_commands: 5,
            flood_yield_ms: 3_600_000,
            ..StoreLimits::default()
        };
        let mut queue = Queue::new(limits);
        queue.large_at.insert(agent(FLOODING), Instant::now());
        for &bytes in sizes {
            queue.add(WriterOrder::Task(Box::new(Sized(bytes, FLOODING))));
        }
        queue
    }

    fn next(queue: &mut Queue, holds: bool) -> Vec<usize> {
        queue.next(holds).tasks.iter().map(|task| task.bytes()).collect()
    }

    #[test]
    fn small_and_large_writes_take_turns() {
        let mut queue = queue(&[20, 20, 20, 1, 2]);
        assert_eq!(next(&mut queue, false), [1, 2]);
        queue.add(WriterOrder::Task(Box::new(Sized(3, FLOODING))));
        assert_eq!(next(&mut queue, false), [20, 20], "who says little does not keep a flood waiting either");
        assert_eq!(next(&mut queue, false), [3]);
        assert_eq!(next(&mut queue, false), [20]);
        assert!(queue.is_empty() && next(&mut queue, false).is_empty());
    }

    #[test]
    fn a_transaction_takes_so_many_in_their_order() {
        let mut queue = queue(&[1, 2, 3, 4]);
        assert_eq!(next(&mut queue, false), [1, 2, 3]);
        assert_eq!(next(&mut queue, false), [4]);
    }

    #[test]
    fn large_writes_are_held_while_others_go_on() {
        let mut queue = queue(&[20, 1]);
        let soon = Instant::now() + Duration::from_mins(1);
        assert_eq!(queue.wait(Some(soon)), None);
        assert_eq!(next(&mut queue, true), [1]);
        assert_eq!(queue.wait(Some(soon)), Some(Wait::Until(soon)));
        assert!(next(&mut queue, true).is_empty());
        assert_eq!(queue.wait(None), None);
        assert_eq!(next(&mut queue, false), [20]);
        assert_eq!(queue.wait(Some(soon)), Some(Wait::ForOrders));
    }

    #[test]
    fn a_flood_alone_does_not_rest() {
        let mut queue = queue(&[1, 20, 20]);
        queue.large_is_next = true;
        let group = queue.next(false);
        queue.written(&group, Duration::from_mins(1));
        assert_eq!(next(&mut queue, false), [1]);
        queue.add(WriterOrder::Task(Box::new(Sized(20, FLOODING))));
        assert_eq!((queue.wait(None), next(&mut queue, false)), (None, vec![20]));
    }

    #[test]
    fn a_single_large_write_goes_with_the_small_ones() {
        let mut queue = queue(&[20, 1]);
        queue.add(WriterOrder::Task(Box::new(Sized(20, QUIET))));
        assert_eq!(next(&mut queue, true), [1, 20]);
        queue.add(WriterOrder::Task(Box::new(Sized(20, QUIET))));
        assert!(next(&mut queue, true).is_empty(), "two in a row are a flood");
    }

    #[test]
    fn a_backlog_of_many_shares_transactions_and_does_not_rest() {
        let mut queue = queue(&[10]);
        for number in 10..12 {
            queue.large_at.insert(agent(number), Instant::now());
            queue.add(WriterOrder::Task(Box::new(Sized(10, number))));
        }
        queue.add(WriterOrder::Task(Box::new(Sized(3, QUIET))));
        assert_eq!(next(&mut queue, false), [3]);
        let group = queue.next(false);
        assert_eq!(group.tasks.len(), 3);
        queue.written(&group, Duration::from_mins(1));
        assert_eq!(queue.rests_until, None);
    }

    #[test]
    fn a_flood_rests_while_others_write() {
        let long = Duration::from_mins(1);
        let mut queue = queue(&[20, 20]);
        queue.add(WriterOrder::Task(Box::new(Sized(3, QUIET))));
        assert_eq!(next(&mut queue, false), [3]);
        let group = queue.next(false);
        assert_eq!(group.tasks.len(), 1, "others wait for no more than one");
        queue.written(&group, long);
        assert!(matches!(queue.wait(None), Some(Wait::Until(until)) if Instant::now() + long < until));
        queue.add(WriterOrder::Task(Box::new(Sized(4, QUIET))));
        assert_eq!((next(&mut queue, false), next(&mut queue, false)), (vec![4], vec![]));
        queue.rests_until = Some(Instant::now());
        assert_eq!((queue.wait(None), next(&mut queue, false)), (None, vec![20]));
    }

    #[test]
    fn nobody_is_held_where_no_more_can_queue_or_the_store_closes() {
        let mut full = queue(&[20; 5]);
        assert_eq!(next(&mut full, true), [20, 20]);
        let mut stopped = queue(&[20]);
        stopped.add(WriterOrder::Stop);
        assert_eq!(next(&mut stopped, true), [20]);
    }
}
