//! The tail of each journal that is being written or read: its wake-up signal, and its newest events in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokenrail_domain::{AgentId, Event, Sequence};
use tokio::sync::{Notify, watch};

use crate::batch::Batch;
use crate::fetch_lock::FetchLock;
use crate::follower_pace::FollowerPace;
use crate::newest_batches::NewestBatches;
use crate::shown_lately::ShownLately;
use crate::stretch_cache::StretchCache;

/// What a reader must know to decide whether to read, to wait or to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TailState {
    /// The newest event that is announced. It is committed.
    pub(crate) head: Sequence,
    /// More may come: a turn runs or waits.
    pub(crate) active: bool,
    /// The agent has been deleted.
    pub(crate) gone: bool,
    /// The server is shutting down.
    pub(crate) closing: bool,
}

/// The tail of one journal.
#[derive(Debug)]
pub(crate) struct Tail {
    agent: AgentId,
    state: watch::Sender<TailState>,
    newest: Mutex<NewestBatches>,
    pub(crate) stretch_cache: StretchCache,
    pub(crate) fetch_lock: Arc<FetchLock>,
    followers: AtomicUsize,
    pub(crate) pace: FollowerPace,
    /// Notified when the last follower has left, for the agent's task (`agent_task/unfollowed.rs`).
    pub(crate) unfollowed_for_task: Notify,
    /// The same, for the task of `use_cases/nodes/watching.rs`.
    unfollowed_for_nodes: Notify,
    /// Whether such a task watches this tail.
    is_watched: AtomicBool,
    /// Notified when no turn runs or waits any more. Separate from `state`, which wakes its waiters
    /// in any order.
    idle: Notify,
    budget: Arc<Budget>,
    shown_lately: Arc<ShownLately>,
}

/// How many bytes the tails may hold.
#[derive(Debug)]
struct Budget {
    per_tail: usize,
    of_all: usize,
    used: AtomicUsize,
}

impl Tail {
    /// Announces committed events. They are in memory before the head is raised, so that each woken reader finds them.
    pub(crate) fn announce(&self, events: &Arc<[Event]>) {
        let Some(head) = events.last().map(|event| event.sequence) else { return };
        self.pace.announce(head);
        {
            let mut newest = self.newest();
            newest.release();
            let bytes = newest.push(events);
            self.keep_in_budget(&mut newest, bytes);
        }
        self.wake(head);
    }

    /// Holds committed events back while followers take what was announced before: see `HeldBatches` in
    /// `newest_batches.rs`. Returns false, and does nothing, if they must be announced now.
    ///
    /// The caller soon announces further events, or calls [`Tail::release`].
    pub(crate) fn hold(&self, events: &Arc<[Event]>) -> bool {
        let mut newest = self.newest();
        let Some(bytes) = newest.hold(events, self.budget.per_tail) else { return false };
        self.keep_in_budget(&mut newest, bytes);
        true
    }

    /// Announces the events that are held back, if there are any.
    pub(crate) fn release(&self) {
        let held = self.newest().release();
        if let Some(head) = held {
            self.pace.announce(head);
            self.wake(head);
        }
    }

    /// Like [`Tail::announce`], for events that were read from the store. This node's own task may have announced some
    /// of them meanwhile, so they do not always continue what is in memory.
    pub(crate) fn announce_gathered(&self, events: &Arc<[Event]>) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let (first, head) = (first.sequence, last.sequence);
        self.release();
        self.pace.announce(head);
        {
            let mut newest = self.newest();
            // Readers fetch from the store what is not in memory.
            if newest.last().is_none_or(|kept| kept < first) {
                let bytes = newest.push(events);
                self.keep_in_budget(&mut newest, bytes);
            }
        }
        self.wake(head);
    }

    /// Drops the oldest events if there are too many, now that `added` bytes more are in memory.
    fn keep_in_budget(&self, newest: &mut NewestBatches, added: usize) {
        self.budget.used.fetch_add(added, Ordering::Relaxed);
        while self.budget.per_tail < newest.bytes()
            || self.budget.of_all < self.budget.used.load(Ordering::Relaxed)
        {
            let Some(dropped) = newest.drop_oldest() else { break };
            self.budget.used.fetch_sub(dropped, Ordering::Relaxed);
        }
    }

    fn newest(&self) -> MutexGuard<'_, NewestBatches> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces that the journal has events up to `head`, as the store says. Also announces what is held back: the
    /// followers would get it now, and the pace would not count who takes it.
    pub(crate) fn raise(&self, head: Sequence) {
        if self.state().head < head {
            self.release();
            self.wake(head);
        }
    }

    /// Raises the announced head to at least `head`. This wakes the followers that wait in `Follower::next`
    /// (`src/follow.rs` of this crate). Those of the presentation crate are polled on the thread of a web worker, which
    /// its waker wakes (`WakeUp` in `socket/streams.rs` there).
    fn wake(&self, head: Sequence) {
        self.state.send_if_modified(|state| {
            let newer = state.head < head;
            state.head = state.head.max(head);
            newer
        });
    }

    pub(crate) fn set_active(&self, active: bool) {
        if !active {
            // A reader ends when it has everything that is announced and nothing is active.
            self.release();
        }
        self.state.send_if_modified(|state| std::mem::replace(&mut state.active, active) != active);
        if !active {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn set_gone(&self) {
        self.state.send_modify(|state| {
            state.gone = true;
            state.active = false;
        });
        self.idle.notify_waiters();
    }

    fn set_closing(&self) {
        self.state.send_modify(|state| state.closing = true);
    }

    /// Waits until no turn runs or waits. Waiters continue in the order in which they came, so that a simulation with
    /// the same seed takes the same course.
    pub(crate) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if !self.state().active {
                return;
            }
            idle.await;
        }
    }

    pub(crate) fn state(&self) -> TailState {
        *self.state.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<TailState> {
        self.state.subscribe()
    }

    /// The batch in memory that holds `sequence`.
    pub(crate) fn batch_with(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        self.newest().batch_with(sequence)
    }

    /// The batch that holds `sequence`, if it need not be fetched.
    pub(crate) fn in_memory(&self, sequence: Sequence) -> Option<Arc<Batch>> {
        self.batch_with(sequence).or_else(|| self.stretch_cache.batch_with(sequence))
    }

    pub(crate) fn follower_came(&self) {
        self.followers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn follower_left(&self) {
        if self.followers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shown_lately.note(self.agent, self.state().head);
            self.unfollowed_for_task.notify_one();
            self.unfollowed_for_nodes.notify_one();
        }
    }

    /// Returns true to one caller, who watches whether the tail is followed.
    pub(crate) fn begin_watch(&self) -> bool {
        !self.is_watched.swap(true, Ordering::SeqCst)
    }

    /// Whether somebody watches whether the tail is followed.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    /// Waits until the last follower leaves.
    pub(crate) async fn last_left(&self) {
        self.unfollowed_for_nodes.notified().await;
    }

    /// Ends the watch if nobody follows. A follower that comes meanwhile is either seen here, or finds that nobody
    /// watches.
    pub(crate) fn end_watch_if_unfollowed(&self) -> bool {
        if 0 < self.followers() {
            return false;
        }
        self.is_watched.store(false, Ordering::SeqCst);
        self.followers() == 0 || !self.begin_watch()
    }

    pub(crate) fn followers(&self) -> usize {
        self.followers.load(Ordering::Relaxed)
    }

    /// Drops the events in memory. Readers then read the store.
    pub(crate) fn forget(&self) {
        let mut newest = self.newest();
        self.stretch_cache.clear();
        self.budget.used.fetch_sub(newest.clear(), Ordering::Relaxed);
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The tails of all agents that are being written or followed.
#[derive(Debug)]
pub(crate) struct Tails {
    known: Mutex<KnownTails>,
    budget: Arc<Budget>,
    /// Of readers that have left.
    pub(crate) shown_lately: Arc<ShownLately>,
}

#[derive(Debug, Default)]
struct KnownTails {
    /// In an order that is the same in each run of a simulation.
    tails: BTreeMap<AgentId, Weak<Tail>>,
    /// The server is shutting down.
    closing: bool,
}

impl Tails {
    pub(crate) fn new(per_tail: usize, of_all: usize, shown_lately: ShownLately) -> Self {
        let budget = Budget { per_tail, of_all, used: AtomicUsize::new(0) };
        let shown_lately = Arc::new(shown_lately);
        Self { known: Mutex::default(), budget: Arc::new(budget), shown_lately }
    }

    /// The tail of an agent, shared by all its holders at the same time.
    pub(crate) fn of(&self, agent: AgentId) -> Arc<Tail> {
        let mut known = self.known();
        if let Some(tail) = known.tails.get(&agent).and_then(Weak::upgrade) {
            return tail;
        }
        known.tails.retain(|_, tail| tail.strong_count() > 0);
        let tail = Arc::new(Tail {
            agent,
            state: watch::Sender::new(TailState { closing: known.closing, ..TailState::default() }),
            newest: Mutex::default(),
            stretch_cache: StretchCache::new(self.budget.per_tail),
            fetch_lock: Arc::default(),
            followers: AtomicUsize::new(0),
            pace: FollowerPace::new(),
            unfollowed_for_task: Notify::new(),
            unfollowed_for_nodes: Notify::new(),
            is_watched: AtomicBool::new(false),
            idle: Notify::new(),
            budget: Arc::clone(&self.budget),
            shown_lately: Arc::clone(&self.shown_lately),
        });
        known.tails.insert(agent, Arc::downgrade(&tail));
        tail
    }

    /// Ends the wait of all followers, because the server is shutting down.
    pub(crate) fn close(&self) {
        let mut known = self.known();
        known.closing = true;
        known.tails.values().filter_map(Weak::upgrade).for_each(|tail| tail.set_closing());
    }

    /// The tail of an agent. `None` if nothing holds it.
    pub(crate) fn get(&self, agent: AgentId) -> Option<Arc<Tail>> {
        self.known().tails.get(&agent).and_then(Weak::upgrade)
    }

    /// The agents that have followers.
    pub(crate) fn followed(&self) -> Vec<AgentId> {
        let known = self.known();
        let is_followed = |tail: &Weak<Tail>| tail.upgrade().is_some_and(|tail| 0 < tail.followers());
        known.tails.iter().filter(|(_, tail)| is_followed(tail)).map(|(agent, _)| *agent).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.budget.used.load(Ordering::Relaxed)
    }

    pub(crate) fn followers(&self) -> usize {
        self.known().tails.values().filter_map(Weak::upgrade).map(|tail| tail.followers()).sum()
    }

    fn known(&self) -> MutexGuard<'_, KnownTails> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
