//! The store: opened, used, closed.

mod ports;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokenrail_ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::orders::{ask, closed};
use crate::passed_over::PassedOver;
use crate::planted;
use crate::sqlite::checkpoint::{self, CheckpointRound, LogCutter, UnderWay};
use crate::sqlite::command::{WaitingCommand, WriteCommand, WriterOrder};
use crate::sqlite::config::SqliteConfig;
use crate::sqlite::database::connection::{ReaderSource, open_writer};
use crate::sqlite::database::folder::Folder;
use crate::sqlite::database::reserve::Reserve;
use crate::sqlite::database::schema;
use crate::sqlite::error::OpenError;
use crate::sqlite::error::store_error;
use crate::sqlite::maintenance::start_check;
use crate::sqlite::statements::compaction::{self, PackedTo};
use crate::sqlite::writer::Writer;

/// The store on SQLite. Clones are the same store.
///
/// It stays responsive under load: writes go to one thread through a bounded queue, and a bounded number of reads
/// runs on blocking threads.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    config: SqliteConfig,
    orders: mpsc::Sender<WriterOrder>,
    readers: r2d2::Pool<ReaderSource>,
    reading: Arc<Semaphore>,
    threads: Mutex<Option<Threads>>,
    passed_over: PassedOver,
    packed_to: Mutex<PackedTo>,
    #[cfg(test)]
    faults: crate::sqlite::writer::CommitFaults,
}

struct Threads {
    writer: JoinHandle<()>,
    checkpoint: JoinHandle<()>,
    /// Requests to the checkpoint thread.
    rounds: SyncSender<CheckpointRound>,
}

impl SqliteStore {
    /// Opens the store in its folder, or creates a new one, and migrates its schema. Blocks.
    ///
    /// # Errors
    /// [`OpenError`] has one variant for each action that an operator can take.
    pub fn open(config: SqliteConfig) -> Result<Self, OpenError> {
        schema::check_sqlite()?;
        let folder = Folder::claim(&config.folder)?;
        let mut reserve = Reserve::in_folder(&config.folder, &config.limits);
        let opened = match open_database(&folder, &config) {
            Err(error) if error.may_be_for_want_of_room() && reserve.give_up() => {
                tracing::error!("the disk is full: using the space reserved for starting the server");
                open_database(&folder, &config)
            }
            opened => opened,
        };
        let (path, connection, checkpoints) = opened?;
        // Never closed: closing any descriptor of the file would release the locks that the connections of this
        // process hold on it.
        let database = ManuallyDrop::new(File::open(&path).map_err(|error| OpenError::io(&path, error))?);
        let readers = readers(&path, &config);

        let (orders, receiver) = mpsc::channel(config.limits.queued_commands.max(1));
        #[cfg(test)]
        let faults = crate::sqlite::writer::CommitFaults::default();
        // One pending request is enough.
        let (rounds, asked) = sync_channel(1);
        let under_way = UnderWay::default();
        let writer = Writer {
            path: path.clone(),
            config: config.clone(),
            connection: Some(connection),
            cutter: LogCutter::new(
                &path,
                &config.limits,
                Arc::new(Mutex::new(reserve)),
                (rounds.clone(), Arc::clone(&under_way)),
            ),
            // A previous run of the server may have left purged data.
            to_wipe: Arc::new(AtomicBool::new(true)),
            wipe_after: None,
            _folder: Arc::new(folder),
            #[cfg(test)]
            faults: faults.clone(),
        };
        let threads = start(writer, receiver, (checkpoints, database, under_way), &orders, (rounds, asked))
            .map_err(|error| OpenError::io(&path, error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                reading: Arc::new(Semaphore::new(config.limits.readers.max(1) as usize)),
                config,
                orders,
                readers,
                threads: Mutex::new(Some(threads)),
                passed_over: PassedOver::default(),
                packed_to: Mutex::default(),
                #[cfg(test)]
                faults,
            }),
        })
    }

    /// Finishes all queued writes, checkpoints the log and releases the folder. Later calls, on any clone, return
    /// [`StoreError::Unavailable`]. Closing again has no effect.
    pub async fn close(&self) {
        // It queues like any command, so that everything before it is done.
        let _stopped = self.inner.orders.send(WriterOrder::Stop).await;
        let inner = Arc::clone(&self.inner);
        let joined = tokio::task::spawn_blocking(move || inner.join()).await;
        if let Err(error) = joined {
            tracing::error!(error = &error as &dyn std::error::Error, "the database did not close cleanly");
        }
    }

    /// Runs the command on the writer thread: [`Writer::run`].
    async fn write<C: WriteCommand>(&self, command: C) -> Result<C::Answer, StoreError> {
        let (task, answer) = WaitingCommand::new(command);
        ask(&self.inner.orders, WriterOrder::Task(Box::new(task)), answer).await
    }

    /// Packs the next batches of an ended turn: reads them, packs them on a thread in the background, and saves the
    /// result. Returns whether there were any.
    async fn compact(&self) -> Result<bool, StoreError> {
        let limits = self.inner.config.limits.clone();
        let (reading, after, packed_to) = (limits.clone(), self.inner.passed_over.last(), *self.packed_to());
        let read = self.read_with(move |db| compaction::read(db, after, packed_to, &reading)).await?;
        let Some((place, part)) = read else { return Ok(self.inner.passed_over.begin_anew()) };
        let packing = async {
            let part = part?;
            let packed_to = part.packed_to();
            self.write(self.in_background(move || part.pack(&limits)).await??).await?;
            *self.packed_to() = packed_to.unwrap_or_default();
            Ok(())
        };
        packing.await.inspect_err(|_| self.inner.passed_over.pass_over(place)).map(|()| true)
    }

    fn packed_to(&self) -> MutexGuard<'_, PackedTo> {
        self.inner.packed_to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does work that takes long on a thread of its own, which gives way to others.
    async fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let before_background_work = self.inner.config.before_background_work;
        let (done, result) = oneshot::channel();
        let work = move || {
            before_background_work();
            // The caller may be gone.
            let _gone = done.send(work());
        };
        Builder::new().name("compaction".into()).spawn(work).map_err(unavailable)?;
        result.await.map_err(unavailable)
    }

    /// Reads in one transaction, that is, from one snapshot. This is the only place at which a read leaves the
    /// asynchronous threads.
    async fn read_with<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let readers = self.inner.readers.clone();
        let read = move |permit: OwnedSemaphorePermit| {
            tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let mut connection = readers.get().map_err(unavailable)?;
                let transaction = connection.transaction().map_err(store_error)?;
                read(&transaction)
            })
        };
        let reading = Arc::clone(&self.inner.reading);
        if let Ok(permit) = Arc::clone(&reading).try_acquire_owned() {
            return read(permit).await.map_err(unavailable)?;
        }
        // A task waits for the permit: a caller that is not polled must not keep a permit that it was given.
        let mut waiting = JoinSet::new();
        waiting.spawn(async move {
            let permit = reading.acquire_owned().await.map_err(|_| closed())?;
            read(permit).await.map_err(unavailable)?
        });
        waiting.join_next().await.ok_or_else(closed)?.map_err(unavailable)?
    }
}

impl Inner {
    fn join(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { writer, checkpoint, rounds }) = threads else { return };
        self.reading.close();
        // This fails if the thread has ended.
        let _ = rounds.send(CheckpointRound::Last);
        for thread in [checkpoint, writer] {
            if thread.join().is_err() {
                tracing::error!("a thread of the database panicked");
            }
        }
    }
}

impl Drop for Inner {
    /// Without [`SqliteStore::close`]: the folder must be free when this returns. It waits for one transaction at most,
    /// because no caller is left that could have queued more.
    fn drop(&mut self) {
        let (closed, _) = mpsc::channel(1);
        self.orders = closed;
        self.join();
    }
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

/// The connections of the two threads.
fn open_database(
    folder: &Folder,
    config: &SqliteConfig,
) -> Result<(PathBuf, Connection, Connection), OpenError> {
    let path = folder.database()?;
    let failed = |error| OpenError::sqlite(&path, error);
    let mut connection = open_writer(&path, config).map_err(failed)?;
    schema::migrate(&mut connection, &path)?;
    start_check::check(&connection, &path, config.limits.start_check_bytes)?;
    folder.mark_as_used()?;
    let checkpoints = open_writer(&path, config).map_err(failed)?;
    Ok((path, connection, checkpoints))
}

fn readers(path: &Path, config: &SqliteConfig) -> r2d2::Pool<ReaderSource> {
    let source = ReaderSource { path: path.to_owned(), busy_timeout_ms: config.limits.busy_timeout_ms };
    r2d2::Pool::builder()
        .max_size(config.limits.readers.max(1))
        .min_idle(Some(0))
        // Each running read has a connection, so waiting here means that the file cannot be opened.
        .connection_timeout(Duration::from_millis(u64::from(config.limits.busy_timeout_ms.max(1))))
        .idle_timeout(None)
        .max_lifetime(None)
        .test_on_check_out(false)
        .build_unchecked(source)
}

fn start(
    writer: Writer,
    receiver: mpsc::Receiver<WriterOrder>,
    (checkpoints, database, under_way): (Connection, ManuallyDrop<File>, UnderWay),
    orders: &mpsc::Sender<WriterOrder>,
    (rounds, asked): (SyncSender<CheckpointRound>, Receiver<CheckpointRound>),
) -> std::io::Result<Threads> {
    let (path, limits) = (writer.path.clone(), writer.config.limits.clone());
    let before_background_work = writer.config.before_background_work;
    // A weak sender: the checkpoint thread alone must not keep the writer alive.
    let orders = orders.downgrade();
    let to_wipe = Arc::clone(&writer.to_wipe);
    let reserve = writer.cutter.reserve();
    let checkpoint = Builder::new().name("checkpoint".into()).spawn(move || {
        before_background_work();
        checkpoint::run(
            &checkpoints,
            (&path, &database, &under_way),
            &limits,
            &reserve,
            (&orders, &to_wipe),
            &asked,
        );
    })?;
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let work = planted::passed_on(move || writer.run(receiver, &clock));
    let writer = Builder::new().name("store-writer".into()).spawn(work)?;
    Ok(Threads { writer, checkpoint, rounds })
}
