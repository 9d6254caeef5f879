//! The one thread that writes.
//!
//! It commits the next group of its queue in one transaction. A single token is committed at once; a flood is committed
//! in groups, in turns with the small writes of others. A caller gets `Ok` only when its transaction is known to be
//! durable.

mod commit;
mod queue;

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokenrail_ports::StoreError;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use self::commit::CommitOutcome;
#[cfg(test)]
pub(crate) use self::commit::{CommitFault, CommitFaults, NEXT_NUMBER, NUMBER};
use self::queue::{Queue, Wait};
use crate::sqlite::checkpoint::{LogCut, LogCutter};
use crate::sqlite::command::{Task, WriterOrder};
use crate::sqlite::config::SqliteConfig;
use crate::sqlite::database::folder::Folder;
use crate::sqlite::database::reserve::ReserveUse;
use crate::sqlite::error::shared_store_error;
use crate::sqlite::wipe::{self, Wiped};

/// The next wipe waits this many times as long as the last one took.
const WIPE_PAUSE: u32 = 20;

/// A failed wipe is retried after this time.
const WIPE_AGAIN: Duration = Duration::from_secs(10);

/// How long a stop waits for a checkpoint or a reader that is in the way of the last wipe. The next start wipes then.
const LAST_WIPE_WAIT: Duration = Duration::from_secs(1);

/// The pause between two tries of the last wipe.
const LAST_WIPE_PAUSE: Duration = Duration::from_millis(5);

/// The state of the writer.
pub(crate) struct Writer {
    pub(crate) path: PathBuf,
    pub(crate) config: SqliteConfig,
    /// `None` after a failed COMMIT: the next transaction opens a new connection.
    pub(crate) connection: Option<Connection>,
    pub(crate) cutter: LogCutter,
    /// Purged data may have to be wiped when nobody writes.
    pub(crate) to_wipe: Arc<AtomicBool>,
    /// No wipe starts before this time.
    pub(crate) wipe_after: Option<Instant>,
    /// Held until the last write is done, even if the store is dropped without being closed.
    pub(crate) _folder: Arc<Folder>,
    #[cfg(test)]
    pub(crate) faults: CommitFaults,
}

impl Writer {
    /// Runs until it receives the order to stop, or no sender is left.
    pub(crate) fn run(mut self, mut orders: mpsc::Receiver<WriterOrder>, clock: &Runtime) {
        let mut queue = Queue::new(self.config.limits.clone());
        while !queue.stop || !queue.is_empty() {
            match queue.wait(self.cutter.holds()) {
                None => {}
                Some(Wait::ForOrders) => queue.add(orders.blocking_recv().unwrap_or(WriterOrder::Stop)),
                Some(Wait::Until(until)) => {
                    let next = clock.block_on(async { timeout_at(until.into(), orders.recv()).await });
                    if let Ok(order) = next {
                        queue.add(order.unwrap_or(WriterOrder::Stop));
                    }
                }
            }
            queue.add_all(&mut orders);
            if queue.expects_more() {
                // The thread that woke the writer probably has more to send. If both share a core, the kernel runs the
                // writer after each write, and each write would get its own transaction.
                thread::yield_now();
                queue.add_all(&mut orders);
            }
            let mut group = queue.next(self.cutter.holds().is_some());
            let began = Instant::now();
            self.commit_all(mem::take(&mut group.tasks));
            queue.written(&group, began.elapsed());
            if group.empties_log {
                self.to_wipe.store(true, Ordering::Relaxed);
            }
            let cut_log = queue.take_cut_log();
            if cut_log && self.wipe_after.is_none_or(|after| after <= Instant::now()) {
                self.wipe();
            }
            let (empty, checkpoint_done) = (cut_log || group.empties_log, queue.take_checkpoint_done());
            self.cut_log(LogCut { empty, checkpoint_done });
        }
        let until = Instant::now() + LAST_WIPE_WAIT;
        while !self.wipe() && Instant::now() < until {
            thread::sleep(LAST_WIPE_PAUSE);
        }
        self.cut_log(LogCut { empty: true, checkpoint_done: false });
    }

    /// Wipes purged data. Runs only if nobody writes, because every write would wait for it. A wipe that is not
    /// possible now is retried later. Returns false if a checkpoint or a reader is in the way.
    fn wipe(&mut self) -> bool {
        let Some(connection) = &self.connection else { return true };
        if !self.to_wipe.load(Ordering::Relaxed) {
            return true;
        }
        let began = Instant::now();
        // The whole database goes through the log, which would grow without limit while a reader is active.
        let wiped = wipe::is_due(connection, self.config.limits.wipe_bytes).and_then(|due| match due {
            Some(bytes) if self.cutter.empty(connection) => wipe::wipe(connection, &self.path, bytes),
            Some(_) => Ok(Wiped::Blocked),
            None => Ok(Wiped::Done),
        });
        let pause = match wiped {
            Ok(Wiped::Done) => {
                self.to_wipe.store(false, Ordering::Relaxed);
                began.elapsed() * WIPE_PAUSE
            }
            Ok(Wiped::Blocked) => return false,
            Ok(Wiped::NoRoom { needed }) => {
                tracing::warn!(needed, "too little disk space to wipe purged data; retrying later");
                WIPE_AGAIN
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot wipe purged data; retrying later");
                WIPE_AGAIN
            }
        };
        self.wipe_after = Instant::now().checked_add(pause);
        true
    }

    fn commit_all(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        if tasks.is_empty() {
            return;
        }
        let mut outcome = self.commit(&mut tasks);
        if outcome.is_full() {
            self.cutter.note_full();
            outcome = self.commit_with_reserve(&mut tasks, outcome);
        }
        self.answer_all(tasks, outcome);
    }

    /// On a full disk, commits the tasks that may use the reserved disk space in a transaction of their own, so that
    /// no other task uses it. The other tasks stay in `tasks`; returns their outcome.
    fn commit_with_reserve(&mut self, tasks: &mut Vec<Box<dyn Task>>, full: CommitOutcome) -> CommitOutcome {
        let wanted = tasks.iter().map(|task| task.reserve_use()).max().unwrap_or(ReserveUse::None);
        if !self.makes_room(wanted) {
            return full;
        }
        let (mut first, others) = mem::take(tasks)
            .into_iter()
            .partition::<Vec<_>, _>(|task| task.reserve_use() != ReserveUse::None);
        *tasks = others;
        let outcome = self.commit(&mut first);
        self.answer_all(first, outcome);
        full
    }

    /// Tells the callers. For an append, this ends the wait of the pump in the application crate (`carry`, or
    /// `wait_until_saved` at the end of a turn), which calls `after_save`.
    fn answer_all(&mut self, mut tasks: Vec<Box<dyn Task>>, outcome: CommitOutcome) {
        match outcome {
            CommitOutcome::Done => tasks.into_iter().for_each(|task| task.answer(Ok(()))),
            // One of them failed. With a transaction each, it does not affect the others.
            CommitOutcome::Spoilt(_) if 1 < tasks.len() => {
                for task in tasks {
                    self.commit_all(vec![task]);
                }
            }
            CommitOutcome::Spoilt(error) => {
                if let Some(task) = tasks.pop() {
                    task.answer(Err(error));
                }
            }
            CommitOutcome::NotDone(error) => {
                for task in tasks {
                    task.answer(Err(shared_store_error(&error)));
                }
            }
            CommitOutcome::Unknown(error) => {
                for task in tasks {
                    task.answer(Err(StoreError::OutcomeUnknown(Box::new(Arc::clone(&error)))));
                }
            }
        }
    }

    /// Frees the `wanted` part of the reserved disk space, and what the log can free. Returns false if nothing was
    /// freed.
    fn makes_room(&mut self, wanted: ReserveUse) -> bool {
        let Some(connection) = self.connection.as_ref().filter(|_| wanted != ReserveUse::None) else {
            return false;
        };
        let released = self.cutter.release_reserve(wanted);
        self.cutter.empty(connection) || released
    }

    fn cut_log(&mut self, cut: LogCut) {
        if let Some(connection) = &self.connection {
            self.cutter.after_commit(connection, cut);
        }
    }
}
