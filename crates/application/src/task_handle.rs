//! The handle of one agent's task: the lock of the agent's queue, and the channels to its running turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::requests_of_run::Answering;
use crate::waiting::{Waiting, WaitingRoom};

/// The handle of one agent's task.
#[derive(Default)]
pub(crate) struct TaskHandle {
    /// Held while a turn is added to the queue of an agent that has a task, stopped in it or started from it. So a
    /// cancel finds each turn either waiting or running.
    pub(crate) queue: tokio::sync::Mutex<()>,
    /// Notified when the queue has changed ([`poke`](Self::poke)).
    pub(crate) poked: Notify,
    /// The channels to the running turn. `None` if none runs. The token only wakes the running turn: the cancel itself
    /// is in the store. Answers exist only in their channel.
    current: Mutex<Option<Current>>,
    /// Set while the agent waits for a slot.
    waiting: Mutex<Option<Waiting>>,
    pokes: AtomicUsize,
}

/// While an agent has a task, only the holder of this lock adds turns to the agent's queue, stops turns in it or starts
/// them. The task itself ends a stopped turn without it.
pub(crate) type QueueGuard<'a> = tokio::sync::MutexGuard<'a, ()>;

/// How many permission answers for one agent may wait for its task.
const ANSWERS: usize = 16;

/// The sending ends of the channels to a running turn.
struct Current {
    cancel: CancellationToken,
    answers: mpsc::Sender<Answering>,
}

/// The receiving ends, for the task that runs the turn.
pub(crate) struct TurnChannels {
    pub(crate) cancel: CancellationToken,
    pub(crate) answers: mpsc::Receiver<Answering>,
}

impl TaskHandle {
    /// Opens the channels to a turn that begins, new or adopted. From here on, [`TaskHandle::cancel`] reaches it. An
    /// earlier cancel is only in the store, so the caller must read the turn from the store afterwards.
    pub(crate) fn open_channels(&self) -> TurnChannels {
        let cancel = CancellationToken::new();
        let (answers, incoming) = mpsc::channel(ANSWERS);
        *self.current() = Some(Current { cancel: cancel.clone(), answers });
        TurnChannels { cancel, answers: incoming }
    }

    /// Closes the channels, because the turn has ended.
    pub(crate) fn close_channels(&self) {
        *self.current() = None;
    }

    /// Signals the running turn, if there is one, that its stop is saved. `stop_signal` in `pump/waits.rs` waits for
    /// it.
    pub(crate) fn cancel(&self) {
        if let Some(current) = &*self.current() {
            current.cancel.cancel();
        }
    }

    /// The channel for answers to the running turn. `None` if no turn runs.
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

    /// Wakes the agent's task if it waits for a slot (`slot` in `agent_task.rs`). A task that is about to end
    /// finds by `pokes` that it must look at the queue again.
    pub(crate) fn poke(&self) {
        self.pokes.fetch_add(1, Ordering::SeqCst);
        self.poked.notify_one();
    }

    pub(crate) fn pokes(&self) -> usize {
        self.pokes.load(Ordering::SeqCst)
    }
}
