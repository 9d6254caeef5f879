//! The store: opened, used, closed.

mod ports;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokenrail_ports::StoreError;
use tokio::sync::{Semaphore, mpsc};

use crate::OpenError;
use crate::checkpoint::{self, LogCutter};
use crate::config::StoreConfig;
use crate::connection::{ReaderSource, open_writer};
use crate::error::store_error;
use crate::folder::Folder;
use crate::reserve::Reserve;
use crate::schema;
use crate::start_check;
use crate::writer::{Command, Order, Waiting, Writer};

/// The store on disk. Clones are the same store.
///
/// All of it stays usable while it works: writes go to one thread through a bounded queue, reads run on
/// blocking threads, a bounded number at a time.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    config: StoreConfig,
    orders: mpsc::Sender<Order>,
    readers: r2d2::Pool<ReaderSource>,
    reading: Arc<Semaphore>,
    threads: Mutex<Option<Threads>>,
    #[cfg(test)]
    faults: crate::writer::CommitFaults,
}

struct Threads {
    writer: JoinHandle<()>,
    checkpoint: JoinHandle<()>,
    /// Dropped, it stops the checkpoints.
    stop_checkpoint: std_mpsc::Sender<()>,
}

impl Store {
    /// Opens the store in its folder, or makes a new one, and brings its schema up to date. Blocks.
    ///
    /// # Errors
    /// [`OpenError`], one variant for each thing that an operator would do about it.
    pub fn open(config: StoreConfig) -> Result<Self, OpenError> {
        schema::check_sqlite()?;
        let folder = Folder::claim(&config.folder)?;
        let mut reserve = Reserve::in_folder(&config.folder, &config.limits);
        let opened = match open_database(&folder, &config) {
            Err(error) if error.may_be_for_want_of_room() && reserve.give_up() => {
                tracing::error!("the disk is full: what was kept for a start is used up");
                open_database(&folder, &config)
            }
            opened => opened,
        };
        let (path, connection, checkpoints) = opened?;
        let readers = readers(&path, &config);

        let (orders, receiver) = mpsc::channel(config.limits.queued_commands.max(1));
        #[cfg(test)]
        let faults = crate::writer::CommitFaults::default();
        let writer = Writer {
            path: path.clone(),
            config: config.clone(),
            connection: Some(connection),
            cutter: LogCutter::new(&path, &config.limits, Arc::new(Mutex::new(reserve))),
            // An earlier life of the server may have left it.
            to_wipe: Arc::new(AtomicBool::new(true)),
            wipe_after: None,
            _folder: Arc::new(folder),
            #[cfg(test)]
            faults: faults.clone(),
        };
        let threads =
            start(writer, receiver, checkpoints, &orders).map_err(|error| OpenError::io(&path, error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                reading: Arc::new(Semaphore::new(config.limits.readers.max(1) as usize)),
                config,
                orders,
                readers,
                threads: Mutex::new(Some(threads)),
                #[cfg(test)]
                faults,
            }),
        })
    }

    /// Finishes what has queued, takes the log over into the database file and gives the folder back. Later
    /// calls, on any clone, give [`StoreError::Unavailable`]. Closing again changes nothing.
    pub async fn close(&self) {
        // Waits for its turn like any command, so that what came before is done.
        let _stopped = self.inner.orders.send(Order::Stop).await;
        let inner = Arc::clone(&self.inner);
        let joined = tokio::task::spawn_blocking(move || inner.join()).await;
        if let Err(error) = joined {
            tracing::error!(error = &error as &dyn std::error::Error, "the store did not close well");
        }
    }

    /// Has the writer run the command.
    async fn write<C: Command>(&self, command: C) -> Result<C::Answer, StoreError> {
        let (task, answer) = Waiting::new(command);
        if self.inner.orders.send(Order::Task(Box::new(task))).await.is_err() {
            return Err(closed());
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Reads in one transaction, that is from one moment: the only place where a blocking call leaves the
    /// asynchronous threads.
    async fn read_with<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let permit = Arc::clone(&self.inner.reading).acquire_owned().await.map_err(|_| closed())?;
        let readers = self.inner.readers.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut connection = readers.get().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
            let transaction = connection.transaction().map_err(store_error)?;
            read(&transaction)
        });
        reading.await.map_err(|error| StoreError::Unavailable(Box::new(error)))?
    }
}

impl Inner {
    fn join(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { writer, checkpoint, stop_checkpoint }) = threads else { return };
        self.reading.close();
        drop(stop_checkpoint);
        for thread in [checkpoint, writer] {
            if thread.join().is_err() {
                tracing::error!("a thread of the store has panicked");
            }
        }
    }
}

impl Drop for Inner {
    /// Without [`Store::close`]: the folder must be free when this returns. It waits for one transaction at most,
    /// since nobody is left who could have queued more.
    fn drop(&mut self) {
        let (closed, _) = mpsc::channel(1);
        self.orders = closed;
        self.join();
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

/// The connections of the two threads.
fn open_database(
    folder: &Folder,
    config: &StoreConfig,
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

fn readers(path: &Path, config: &StoreConfig) -> r2d2::Pool<ReaderSource> {
    let source = ReaderSource { path: path.to_owned(), busy_timeout_ms: config.limits.busy_timeout_ms };
    r2d2::Pool::builder()
        .max_size(config.limits.readers.max(1))
        .min_idle(Some(0))
        // There is a connection for each read that may run: who waits here waits for a file that cannot be opened.
        .connection_timeout(Duration::from_millis(u64::from(config.limits.busy_timeout_ms.max(1))))
        .idle_timeout(None)
        .max_lifetime(None)
        .test_on_check_out(false)
        .build_unchecked(source)
}

fn start(
    writer: Writer,
    receiver: mpsc::Receiver<Order>,
    checkpoints: Connection,
    orders: &mpsc::Sender<Order>,
) -> std::io::Result<Threads> {
    let (path, limits) = (writer.path.clone(), writer.config.limits.clone());
    let (stop_checkpoint, stopped) = std_mpsc::channel();
    // A weak end: the checkpoints alone must not keep the writer waiting for orders.
    let orders = orders.downgrade();
    let to_wipe = Arc::clone(&writer.to_wipe);
    let reserve = writer.cutter.reserve();
    let checkpoint = Builder::new().name("checkpoint".into()).spawn(move || {
        checkpoint::run(&checkpoints, &path, &limits, &reserve, (&orders, &to_wipe), &stopped);
    })?;
    let writer = Builder::new().name("store-writer".into()).spawn(move || writer.run(receiver))?;
    Ok(Threads { writer, checkpoint, stop_checkpoint })
}
