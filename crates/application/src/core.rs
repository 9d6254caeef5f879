//! What the use cases and the tasks share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokenrail_domain::{Agent, AgentId, AgentStatus, ListedAgent, Timestamp};
use tokenrail_ports::{Append, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OnceCell, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Refusal;
use crate::full_since::FullSince;
use crate::limits::Limits;
use crate::news::{News, NewsDesk};
use crate::outside::Outside;
use crate::planted;
use crate::questions::Answering;
use crate::stats::Counters;
use crate::tails::{Tail, Tails};
use crate::token_bucket::TokenBucket;
use crate::waiting::{Waiting, WaitingRoom};

/// What the use cases and the tasks share.
pub(crate) struct Core {
    pub(crate) outside: Outside,
    pub(crate) limits: Limits,
    pub(crate) tails: Tails,
    pub(crate) news: NewsDesk,
    /// The time of keys, and when it was that.
    key_times: OnceCell<(Timestamp, Instant)>,
    pub(crate) counters: Counters,
    /// The server is going down: streams end, pumps stop, agents live on.
    pub(crate) closing: CancellationToken,
    /// The server is going down and its agents with it: nothing new begins.
    pub(crate) draining: CancellationToken,
    pub(crate) tracker: TaskTracker,
    /// The runtime of the tasks. A web worker's own runtime is a single thread that must not carry agents.
    pub(crate) runtime: Handle,
    pub(crate) places: Arc<Semaphore>,
    /// Histories that may be taken in at the same time.
    pub(crate) imports: Arc<Semaphore>,
    /// Launches that may come now.
    launches: Mutex<TokenBucket>,
    /// Agents that wait for a place.
    pub(crate) waiting: WaitingRoom,
    /// Rung when a turn has ended: its batches can be packed.
    pub(crate) compaction: Notify,
    /// Rung when an agent's task has ended.
    pub(crate) retired: Notify,
    /// The last write of an agent has failed because the disk is full.
    disk_full: AtomicBool,
    /// Sorted: a stop reaches the agents in the same order in each run of a simulation.
    controls: Mutex<BTreeMap<AgentId, Arc<Control>>>,
}

/// The handle of one agent's task.
#[derive(Default)]
pub(crate) struct Control {
    /// Held while a turn is taken from the queue, put into it, or taken out of it: so that a cancel meets a turn
    /// either waiting or running.
    pub(crate) queue: tokio::sync::Mutex<()>,
    /// Rung when the queue has changed.
    pub(crate) poked: Notify,
    /// Tells the turn that runs of a cancel. That it is cancelled stands in the store: this only wakes its task.
    current: Mutex<Option<Current>>,
    /// As long as the agent waits for a place.
    waiting: Mutex<Option<Waiting>>,
    pokes: AtomicUsize,
}

/// Whoever holds it is the only one who takes turns from an agent's queue, or puts them into it.
pub(crate) type QueueGuard<'a> = tokio::sync::MutexGuard<'a, ()>;

/// How many answers to questions of one agent may be on their way to its task.
const ANSWERS: usize = 16;

/// How the turn that runs is spoken to.
struct Current {
    cancel: CancellationToken,
    answers: mpsc::Sender<Answering>,
}

/// What the task of a turn listens to.
pub(crate) struct TurnInbox {
    pub(crate) cancel: CancellationToken,
    pub(crate) answers: mpsc::Receiver<Answering>,
}

impl Control {
    /// Begins a turn, new or taken up: from here on it hears of a cancel. One that came before stands in the store,
    /// so whoever begins a turn looks there afterwards.
    pub(crate) fn begin(&self) -> TurnInbox {
        let cancel = CancellationToken::new();
        let (answers, heard) = mpsc::channel(ANSWERS);
        *self.current() = Some(Current { cancel: cancel.clone(), answers });
        TurnInbox { cancel, answers: heard }
    }

    pub(crate) fn end(&self) {
        *self.current() = None;
    }

    /// Tells the turn that runs, if one does, that it is cancelled.
    pub(crate) fn cancel(&self) {
        if let Some(current) = &*self.current() {
            current.cancel.cancel();
        }
    }

    /// How answers reach the turn that runs; none where none runs.
    pub(crate) fn answers(&self) -> Option<mpsc::Sender<Answering>> {
        self.current().as_ref().map(|current| current.answers.clone())
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn waits(&self, room: &WaitingRoom) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get_or_insert_with(|| room.enter());
    }

    pub(crate) fn waits_no_more(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn poke(&self) {
        self.pokes.fetch_add(1, Ordering::SeqCst);
        self.poked.notify_one();
    }

    pub(crate) fn pokes(&self) -> usize {
        self.pokes.load(Ordering::SeqCst)
    }
}

impl Core {
    pub(crate) fn new(outside: Outside, limits: &Limits, runtime: Handle) -> Self {
        Self {
            outside,
            limits: *limits,
            tails: Tails::new(limits.tail_bytes, limits.tails_bytes),
            news: NewsDesk::new(),
            key_times: OnceCell::new(),
            counters: Counters::default(),
            closing: CancellationToken::new(),
            draining: CancellationToken::new(),
            tracker: TaskTracker::new(),
            runtime,
            places: Arc::new(Semaphore::new(limits.running_agents.min(Semaphore::MAX_PERMITS))),
            imports: Arc::new(Semaphore::new(limits.imports)),
            launches: Mutex::new(TokenBucket::full(limits.launches_per_minute)),
            waiting: WaitingRoom::default(),
            compaction: Notify::new(),
            retired: Notify::new(),
            disk_full: AtomicBool::new(false),
            controls: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.outside.clock.now()
    }

    /// The control of an agent's task, whether it runs or not.
    pub(crate) fn control(&self, agent: AgentId) -> Option<Arc<Control>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).get(&agent).cloned()
    }

    /// Waits for an agent's queue on behalf of a client. Its task may hold it while it saves, which it tries for as
    /// long as the store is out of order: a client is told of that instead of waiting for its end.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Busy`]: nothing was done.
    pub(crate) async fn queue<'a>(&self, control: &'a Control) -> Result<QueueGuard<'a>, StoreError> {
        match tokio::time::timeout(self.limits.command_timeout, control.queue.lock()).await {
            Ok(queue) => Ok(queue),
            Err(_) if self.is_disk_full() => Err(StoreError::Full),
            Err(_) => Err(StoreError::Busy),
        }
    }

    /// Makes sure that an agent's task looks at its queue, and that readers wait for it. Gives the control of a
    /// task that must be spawned where there is none.
    pub(crate) fn poke_or_register(&self, agent: AgentId, tail: &Tail) -> Option<Arc<Control>> {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        tail.set_active(true);
        if let Some(control) = controls.get(&agent) {
            control.poke();
            return None;
        }
        let control = Arc::new(Control::default());
        // Its task may take a while to ask for a place, and more must not be let in meanwhile.
        control.waits(&self.waiting);
        controls.insert(agent, Arc::clone(&control));
        Some(control)
    }

    /// Ends an agent's task, unless it was poked after `pokes`.
    pub(crate) fn retire(&self, agent: AgentId, tail: &Tail, pokes: usize) -> bool {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        let has_news = controls.get(&agent).is_some_and(|control| control.pokes() != pokes);
        if has_news && planted::poke_keeps_task() {
            return false;
        }
        if let Some(control) = controls.remove(&agent) {
            control.waits_no_more();
        }
        tail.set_active(false);
        self.retired.notify_one();
        true
    }

    /// Ends an agent's task, whatever it was poked for: what is open is taken up by the next task for it.
    pub(crate) fn retire_now(&self, agent: AgentId, tail: &Tail) {
        let retired = self.controls.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent);
        if let Some(control) = retired {
            control.waits_no_more();
        }
        tail.set_active(false);
        self.retired.notify_one();
    }

    /// Counts a launch.
    ///
    /// # Errors
    /// [`Refusal::TooManyLaunches`].
    pub(crate) fn count_launch(&self) -> Result<(), Refusal> {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.take().map_err(|wait| Refusal::TooManyLaunches { wait })
    }

    pub(crate) fn active_agents(&self) -> usize {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The time by which keys grow old. It goes on from the newest key with the life of the server, so that a clock that
    /// is wrong, or is set, makes no key old; while no server runs, keys do not grow older.
    pub(crate) async fn key_time(&self) -> Result<Timestamp, StoreError> {
        let from_newest = async || {
            let newest = self.outside.agents.newest_key().await?;
            Ok::<_, StoreError>((newest.unwrap_or_else(|| self.now()), Instant::now()))
        };
        let (begin, at) = self.key_times.get_or_try_init(from_newest).await?;
        let elapsed_ms = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        Ok(Timestamp(begin.0.saturating_add(elapsed_ms)))
    }

    pub(crate) fn tell_created(&self, agent: &Agent, at: Timestamp) {
        let listed = ListedAgent::new(agent.clone(), self.limits.list_field_bytes);
        self.news.tell(News::Created { agent: Box::new(listed), at });
    }

    pub(crate) fn tell_status(&self, agent: AgentId, status: AgentStatus, at: Timestamp) {
        self.news.tell(News::Updated { agent, status, at });
    }

    /// Saves an append, and retries for as long as it takes. Output that cannot be saved waits in the spool.
    ///
    /// # Errors
    /// [`SaveError::Closing`] if the server shuts down meanwhile: the append may be saved, and the next start finds out.
    /// [`SaveError::Refused`] if a retry is of no use.
    pub(crate) async fn save(&self, append: Append) -> Result<Append, SaveError> {
        self.save_unless_full(append, &FullSince::default()).await
    }

    /// Like [`Core::save`], and records in `full` how long the disk has been full. After the limit of `full`, returns
    /// [`StoreError::Full`]: then nothing was saved.
    pub(crate) async fn save_unless_full(
        &self,
        append: Append,
        full: &FullSince,
    ) -> Result<Append, SaveError> {
        let mut pause = self.limits.retry_pause;
        loop {
            let error = match self.outside.journal.append(append.clone()).await {
                Ok(()) => {
                    self.disk_full.store(false, Ordering::Relaxed);
                    full.note_room();
                    for part in append.parts() {
                        Counters::add(&self.counters.events_saved, part.events.len() as u64);
                        Counters::add(&self.counters.batches_saved, 1);
                    }
                    return Ok(append);
                }
                Err(error) if error.is_transient() => error,
                Err(error) => {
                    // A purge does not wait for ever: then there is nothing left that this could contradict.
                    if !matches!(error, StoreError::UnknownAgent(_)) {
                        Counters::add(&self.counters.invariant_violations, 1);
                    }
                    return Err(SaveError::Refused(error));
                }
            };
            let is_full = matches!(error, StoreError::Full);
            self.disk_full.store(is_full, Ordering::Relaxed);
            if !is_full {
                full.note_unknown();
            } else if full.note_full() {
                return Err(SaveError::Refused(error));
            }
            Counters::add(&self.counters.write_retries, 1);
            tracing::warn!(agent = %append.agent, error = &error as &dyn std::error::Error, "write failed, retrying");
            pause = self.pause(pause).await.ok_or(SaveError::Closing)?;
        }
    }

    /// Whether the last write of any agent has failed because the disk is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Waits before another try; gives the next pause, or none where the server goes down.
    pub(crate) async fn pause(&self, pause: Duration) -> Option<Duration> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => None,
            () = tokio::time::sleep(pause) => Some((pause * 2).min(self.limits.retry_pause_max)),
        }
    }
}

/// Why something was not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    #[error("the server is shutting down")]
    Closing,
    #[error("the journal rejected the write")]
    Refused(#[source] StoreError),
}
