//! The state behind the service that all use cases and tasks share. More methods of [`Core`] are in `announce.rs`
//! (`tell_…`, `note_edited`), `command_waits.rs` (`lock_queue`, `command_deadline`), `core/homes.rs` (which node
//! has an agent), `core/hints.rs` (hints to other nodes), `after_failover.rs` (`missing`), and in
//! `use_cases/nodes`: `listening.rs` (`apply_standing`) and `requests_elsewhere.rs`.

mod hints;
mod homes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokenrail_domain::{AgentId, Timestamp};
use tokenrail_ports::{Append, LaunchCount, LetterId, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OnceCell, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Refusal;
use crate::full_since::FullSince;
use crate::lifecycle::LifecycleEvents;
use crate::limits::Limits;
use crate::node_state::{LifecycleElsewhere, Membership, RequestsElsewhere, Underway, Wanted};
use crate::open_requests::OpenRequests;
use crate::outside::Outside;
use crate::planted::{self, Bug};
use crate::recent_savers::RecentSavers;
use crate::shown_lately::ShownLately;
use crate::stats::Counters;
use crate::tails::{Tail, Tails};
use crate::task_handle::TaskHandle;
use crate::token_bucket::TokenBucket;
use crate::waiting::WaitingRoom;

/// What the use cases and the tasks share.
pub(crate) struct Core {
    pub(crate) outside: Outside,
    pub(crate) limits: Limits,
    pub(crate) tails: Tails,
    pub(crate) lifecycle: LifecycleEvents,
    pub(crate) open_requests: OpenRequests,
    /// The start of [`Core::key_time`]: the time of the newest key, and the instant at which it was read.
    key_times: OnceCell<(Timestamp, Instant)>,
    pub(crate) membership: Membership,
    pub(crate) wanted: Wanted,
    pub(crate) lifecycle_elsewhere: LifecycleElsewhere,
    pub(crate) requests_elsewhere: RequestsElsewhere,
    pub(crate) letters: Underway<LetterId>,
    pub(crate) errands: Underway<AgentId>,
    /// The agents whose files are being removed here, because their home is elsewhere now.
    pub(crate) leftovers: Underway<AgentId>,
    /// The agents whose files are being removed here, or could not be removed and are tried again after a while.
    pub(crate) removals: Underway<AgentId>,
    /// Notified when a node is lost.
    pub(crate) orphans: Notify,
    /// Notified when other nodes may have saved something for this one.
    pub(crate) work_left_here: Notify,
    pub(crate) counters: Arc<Counters>,
    /// Cancelled when the server shuts down: streams end and pumps stop. Agents that still run keep running.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the server shuts down and stops its agents: nothing new begins.
    pub(crate) draining: CancellationToken,
    /// Whether the node leaves then: its turns end as interrupted, and other nodes take what they can.
    leaving: AtomicBool,
    pub(crate) tracker: TaskTracker,
    /// The runtime of the agents' tasks. A web worker has its own single-threaded runtime, which must not run agents.
    pub(crate) runtime: Handle,
    /// The slots for running agents (`limits.running_agents`).
    pub(crate) slots: Arc<Semaphore>,
    /// Limits how many imports run at the same time. The presentation counts the files that it receives.
    pub(crate) imports: Arc<Semaphore>,
    /// Limits how often agents are launched, unless the store is shared: then the store counts.
    launches: Mutex<TokenBucket>,
    /// Agents that wait for a slot.
    pub(crate) waiting: WaitingRoom,
    /// Locked while an agent launches another one: the children of an agent are counted, and then there is one more.
    pub(crate) children: tokio::sync::Mutex<()>,
    /// Notified when a turn has ended or an import is complete: there are batches to pack.
    pub(crate) compaction: Notify,
    /// Notified when an agent's task has ended.
    pub(crate) retired: Notify,
    pub(crate) savers: RecentSavers,
    /// Whether the last write of any agent failed because the disk is full.
    disk_full: AtomicBool,
    /// The handles of the agents' tasks, for each agent that has one.
    handles: Mutex<BTreeMap<AgentId, Arc<TaskHandle>>>,
}

impl Core {
    pub(crate) fn new(outside: Outside, limits: &Limits, runtime: Handle, counters: Arc<Counters>) -> Self {
        let shown_lately = ShownLately::of(&outside, limits);
        Self {
            outside,
            limits: *limits,
            tails: Tails::new(limits.reading.tail_bytes, limits.reading.tails_bytes, shown_lately),
            lifecycle: LifecycleEvents::new(),
            open_requests: OpenRequests::new(limits.lists.list_field_bytes),
            membership: Membership::new(),
            wanted: Wanted::default(),
            lifecycle_elsewhere: LifecycleElsewhere::default(),
            requests_elsewhere: RequestsElsewhere::default(),
            letters: Underway::default(),
            errands: Underway::default(),
            leftovers: Underway::default(),
            removals: Underway::default(),
            orphans: Notify::new(),
            work_left_here: Notify::new(),
            key_times: OnceCell::new(),
            counters,
            closing: CancellationToken::new(),
            draining: CancellationToken::new(),
            leaving: AtomicBool::new(false),
            tracker: TaskTracker::new(),
            runtime,
            slots: Arc::new(Semaphore::new(limits.admission.running_agents.min(Semaphore::MAX_PERMITS))),
            imports: Arc::new(Semaphore::new(limits.admission.imports)),
            launches: Mutex::new(TokenBucket::full(limits.admission.launches_per_minute)),
            waiting: WaitingRoom::default(),
            children: tokio::sync::Mutex::new(()),
            compaction: Notify::new(),
            retired: Notify::new(),
            savers: RecentSavers::default(),
            disk_full: AtomicBool::new(false),
            handles: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.outside.clock.now()
    }

    /// The handle of an agent's task. `None` if the agent has no task.
    pub(crate) fn task_handle(&self, agent: AgentId) -> Option<Arc<TaskHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).get(&agent).cloned()
    }

    /// Makes sure that an agent's task checks its queue, and that readers wait for it. Returns a new handle if the
    /// agent has no task: the caller must spawn one (`tasks`). Until the task asks for a slot, the agent already
    /// counts as waiting.
    pub(crate) fn poke_or_register(&self, agent: AgentId, tail: &Tail) -> Option<Arc<TaskHandle>> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        tail.set_active(true);
        if let Some(handle) = handles.get(&agent) {
            handle.poke();
            return None;
        }
        let handle = Arc::new(TaskHandle::default());
        // Otherwise, a further launch would be admitted until the task asks.
        handle.waits(&self.waiting);
        handles.insert(agent, Arc::clone(&handle));
        Some(handle)
    }

    /// Ends an agent's task, unless it was poked since `pokes` was read. Returns whether it ended.
    pub(crate) fn retire(&self, agent: AgentId, tail: &Tail, pokes: usize) -> bool {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let has_news = handles.get(&agent).is_some_and(|handle| handle.pokes() != pokes);
        if has_news && planted::correctly(Bug::RetireIgnoresNews) {
            return false;
        }
        if let Some(handle) = handles.remove(&agent) {
            handle.waits_no_more();
        }
        tail.set_active(false);
        self.retired.notify_one();
        true
    }

    /// Ends an agent's task even if it was poked. The agent's next task continues with the open turns.
    pub(crate) fn retire_now(&self, agent: AgentId, tail: &Tail) {
        // Locked until the tail is inactive: otherwise a new task could be active in between.
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.remove(&agent) {
            handle.waits_no_more();
        }
        tail.set_active(false);
        self.retired.notify_one();
    }

    /// How many more agents can begin at once.
    pub(crate) fn free_slots(&self) -> usize {
        // An agent counts as waiting until its task takes a slot, even if one is free.
        self.slots.available_permits().saturating_sub(self.waiting.len())
    }

    pub(crate) fn has_free_slot(&self) -> bool {
        0 < self.free_slots()
    }

    /// A slot is free again, so a launch that waits can be taken.
    pub(crate) fn note_free_slot(&self) {
        if self.outside.nodes.is_shared() {
            self.work_left_here.notify_one();
        }
    }

    /// Counts a launch: of all nodes, if the store is shared.
    ///
    /// # Errors
    /// [`Refusal::TooManyLaunches`], [`Refusal::Store`].
    pub(crate) async fn count_launch(&self) -> Result<(), Refusal> {
        if self.outside.nodes.is_shared() {
            let per_minute = self.limits.admission.launches_per_minute;
            return match self.outside.nodes.count_launch(per_minute).await? {
                LaunchCount::Counted => Ok(()),
                LaunchCount::TooMany { wait } => Err(Refusal::TooManyLaunches { wait }),
            };
        }
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.take().map_err(|wait| Refusal::TooManyLaunches { wait })
    }

    pub(crate) fn active_agents(&self) -> usize {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The time that decides how old a key is. It starts at the time of the newest key and advances while the server
    /// runs, so a wrong or adjusted system clock does not age a key. While no server runs, keys do not age. Several
    /// nodes start at the time of the clock that they share: otherwise, one that has started just now would save keys
    /// that are old for the others.
    pub(crate) async fn key_time(&self) -> Result<Timestamp, StoreError> {
        let from_newest = async || {
            let newest = self.outside.agents.newest_key().await?;
            let begin = newest.max(self.outside.nodes.shared_time().await?);
            Ok::<_, StoreError>((begin.unwrap_or_else(|| self.now()), Instant::now()))
        };
        let (begin, at) = self.key_times.get_or_try_init(from_newest).await?;
        let elapsed_ms = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        Ok(Timestamp(begin.0.saturating_add(elapsed_ms)))
    }

    /// Saves an append, and retries for as long as it takes. Output that cannot be saved waits in the spool.
    ///
    /// # Errors
    /// [`SaveError::Closing`] if the server shuts down meanwhile: the append may be saved, and the next start finds
    /// out. [`SaveError::Refused`] if a retry is of no use.
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
        let mut pause = self.limits.saving.retry_pause;
        loop {
            // The next step is in the persistence crate: `append` in `store/ports.rs` of `sqlite/` or `postgres/`.
            let error = match self.outside.journal.append(append.clone()).await {
                Ok(()) => {
                    self.disk_full.store(false, Ordering::Relaxed);
                    full.note_room();
                    for part in append.parts() {
                        self.savers.note(part.agent);
                        Counters::add(&self.counters.events_saved, part.events.len() as u64);
                        Counters::add(&self.counters.batches_saved, 1);
                    }
                    return Ok(append);
                }
                Err(error) if error.is_transient() => error,
                Err(error) => {
                    // A purge waits only for `limits.shutdown_timeout_s`, so the agent may be gone while its task still
                    // saves. And another server may take over an agent at any time. Neither violates an invariant.
                    match &error {
                        StoreError::UnknownAgent(_) => {}
                        StoreError::Fenced => Counters::add(&self.counters.fenced_writes, 1),
                        _ => Counters::add(&self.counters.invariant_violations, 1),
                    }
                    return Err(SaveError::Refused(error));
                }
            };
            let is_full = matches!(error, StoreError::Full);
            self.disk_full.store(is_full, Ordering::Relaxed);
            // The disk of a shared store has none of the spools, so nobody frees space on it by ending an agent.
            if !is_full || self.outside.nodes.is_shared() {
                full.note_unknown();
            } else if full.note_full() {
                return Err(SaveError::Refused(error));
            } else {
                pause = pause.min(self.limits.saving.full_disk_pause());
            }
            Counters::add(&self.counters.write_retries, 1);
            tracing::warn!(agent = %append.agent, error = &error as &dyn std::error::Error, "cannot write to the database; retrying");
            pause = self.pause(pause).await.ok_or(SaveError::Closing)?;
        }
    }

    /// Ends the streams and the tasks.
    pub(crate) fn close(&self) {
        self.closing.cancel();
        self.tails.close();
    }

    /// From here on nothing new begins, and what runs is stopped.
    pub(crate) fn drain(&self, leave: bool) {
        self.leaving.store(leave, Ordering::Release);
        self.draining.cancel();
    }

    /// Whether this node ends its turns because it leaves.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Whether the last write of any agent has failed because the disk is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Waits before a retry. Returns the next pause, or `None` if the server shuts down.
    pub(crate) async fn pause(&self, pause: Duration) -> Option<Duration> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => None,
            () = tokio::time::sleep(pause) => Some((pause * 2).min(self.limits.saving.retry_pause_max)),
        }
    }
}

/// Why something was not saved, or why an agent's task cannot continue: its reads and waits return this too.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    #[error("the server is shutting down")]
    Closing,
    /// Another node may run the agent's turns.
    #[error("any node can take over this agent now")]
    LetGo,
    #[error("the database refused a read or a write")]
    Refused(#[source] StoreError),
}
