//! The one thread that writes.
//!
//! It takes what has queued and commits all of it in one transaction: one token alone goes at once, a flood
//! goes in groups. Nobody is told `Ok` before it is known that the transaction is durable.

mod commit;
mod task;

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokenrail_ports::StoreError;
use tokio::sync::mpsc;

use self::commit::Outcome;
#[cfg(test)]
pub(crate) use self::commit::{CommitFault, CommitFaults};
pub(crate) use self::task::{Command, Failure, Order, Task, Waiting};
use crate::checkpoint::LogCutter;
use crate::config::{StoreConfig, StoreLimits};
use crate::error::shared_store_error;
use crate::folder::Folder;
use crate::reserve::ReserveUse;
use crate::wipe::{self, Wiped};

/// After a wipe, writers have so many times as long as they may have waited for it.
const WIPE_REST: u32 = 20;

/// A wipe that has failed is tried again after this.
const WIPE_AGAIN: Duration = Duration::from_secs(10);

/// What the writer works with.
pub(crate) struct Writer {
    pub(crate) path: PathBuf,
    pub(crate) config: StoreConfig,
    /// None after a COMMIT that failed: the next transaction opens a new one.
    pub(crate) connection: Option<Connection>,
    pub(crate) cutter: LogCutter,
    /// Something may have to be wiped when nobody writes.
    pub(crate) to_wipe: Arc<AtomicBool>,
    /// It is not done before.
    pub(crate) wipe_after: Option<Instant>,
    /// Held until the last write is done, also where the store is dropped without being closed.
    pub(crate) _folder: Arc<Folder>,
    #[cfg(test)]
    pub(crate) faults: CommitFaults,
}

impl Writer {
    /// Runs until it is told to stop, or nobody is left who could send.
    pub(crate) fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut stopped = false;
        while !stopped && let Some(first) = orders.blocking_recv() {
            let mut group = Group::default();
            let mut next = Some(first);
            while let Some(order) = next {
                group.add(order);
                let full = group.is_full(&self.config.limits);
                next = if full { None } else { orders.try_recv().ok() };
            }
            self.commit_all(group.tasks);
            if group.empties_log {
                self.to_wipe.store(true, Ordering::Relaxed);
            }
            if group.cut_log && self.wipe_after.is_none_or(|after| after <= Instant::now()) {
                self.wipe();
            }
            self.cut_log(group.cut_log || group.empties_log);
            stopped = group.stop;
        }
        self.wipe();
        self.cut_log(true);
    }

    /// When nobody writes: who does would wait for it. What cannot be wiped now is tried again later.
    fn wipe(&mut self) {
        let Some(connection) = &self.connection else { return };
        if !self.to_wipe.load(Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        // All of the database goes through the log, which would grow without end while somebody reads.
        let wiped = wipe::is_due(connection, self.config.limits.wipe_max_bytes).and_then(|due| match due {
            Some(bytes) if self.cutter.empty(connection) => wipe::wipe(connection, &self.path, bytes),
            Some(_) => Ok(Wiped::Blocked),
            None => Ok(Wiped::Done),
        });
        let pause = match wiped {
            Ok(Wiped::Done) => {
                self.to_wipe.store(false, Ordering::Relaxed);
                began.elapsed() * WIPE_REST
            }
            Ok(Wiped::Blocked) => return,
            Ok(Wiped::NoRoom { needed }) => {
                tracing::warn!(
                    needed,
                    "the disk has too little room to wipe what was purged: it is tried again"
                );
                WIPE_AGAIN
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "what was purged is not wiped: it is tried again");
                WIPE_AGAIN
            }
        };
        self.wipe_after = Instant::now().checked_add(pause);
    }

    fn commit_all(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        if tasks.is_empty() {
            return;
        }
        let mut outcome = self.commit(&mut tasks);
        if outcome.is_full() {
            outcome = self.commit_with_reserve(&mut tasks, outcome);
        }
        self.answer_all(tasks, outcome);
    }

    /// On a full disk: what may use the room that is kept is committed by itself, so that nothing else takes it.
    /// The others stay in `tasks`; gives their outcome.
    fn commit_with_reserve(&mut self, tasks: &mut Vec<Box<dyn Task>>, full: Outcome) -> Outcome {
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

    fn answer_all(&mut self, mut tasks: Vec<Box<dyn Task>>, outcome: Outcome) {
        match outcome {
            Outcome::Done => tasks.into_iter().for_each(|task| task.answer(Ok(()))),
            // One of them is to blame: with a transaction for each, it does not spoil the others.
            Outcome::Spoilt(_) if 1 < tasks.len() => {
                for task in tasks {
                    self.commit_all(vec![task]);
                }
            }
            Outcome::Spoilt(error) => {
                if let Some(task) = tasks.pop() {
                    task.answer(Err(error));
                }
            }
            Outcome::NotDone(error) => {
                for task in tasks {
                    task.answer(Err(shared_store_error(&error)));
                }
            }
            Outcome::Unknown(error) => {
                for task in tasks {
                    task.answer(Err(StoreError::OutcomeUnknown(Box::new(Arc::clone(&error)))));
                }
            }
        }
    }

    /// Gives up what is kept, as far as it is `wanted`, and what the log can give back; false where there is nothing.
    fn makes_room(&mut self, wanted: ReserveUse) -> bool {
        let Some(connection) = self.connection.as_ref().filter(|_| wanted != ReserveUse::None) else {
            return false;
        };
        let released = self.cutter.release_reserve(wanted);
        self.cutter.empty(connection) || released
    }

    fn cut_log(&mut self, asked: bool) {
        if let Some(connection) = &self.connection {
            self.cutter.after_commit(connection, asked);
        }
    }
}

/// What goes into one transaction.
#[derive(Default)]
struct Group {
    tasks: Vec<Box<dyn Task>>,
    bytes: usize,
    cut_log: bool,
    empties_log: bool,
    stop: bool,
}

impl Group {
    fn add(&mut self, order: Order) {
        match order {
            Order::Task(task) => {
                self.bytes += task.bytes();
                self.empties_log |= task.empties_log();
                self.tasks.push(task);
            }
            Order::CutLog => self.cut_log = true,
            Order::Stop => self.stop = true,
        }
    }

    fn is_full(&self, limits: &StoreLimits) -> bool {
        self.stop || limits.commit_max_jobs <= self.tasks.len() || limits.commit_max_bytes <= self.bytes
    }
}
