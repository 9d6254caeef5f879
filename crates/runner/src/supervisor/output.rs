//! Copies the agent's output from its pipe into the spool. If the agent speaks a protocol, as Claude Code does, the
//! pipe is the standard output of its `converse` process, which passes the agent's output on (`converse/exchange.rs`,
//! `read_output`).
//!
//! The next step is in the server: the watcher of the run folders notices that the spool has grown
//! (`process/watch/task.rs`), and wakes the run that reads it (`process/run.rs`).
//!
//! The agent's standard output is a pipe and not the spool itself. A program that opens `/dev/stdout` again would
//! truncate a file, and the earlier output would be lost. The pipe also turns a full disk into a wait: it holds the
//! agent's writes until there is space again.
//!
//! The copy has its own thread, so that a slow disk does not delay a cancel. It uses read(2) and write(2) rather than
//! splice(2). Not every kernel reports a splice to inotify, through which the server learns of new output. And a splice
//! holds the lock of the pipe while it writes to the disk, which stops the agent.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, ioctl_fionbio, ioctl_fionread};
use tokenrail_ports::is_disk_full;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use crate::run_folder::{RunFailure, Unkept};

/// How long to wait between two writes to a full disk.
pub(super) const WRITE_AGAIN: Duration = Duration::from_millis(200);

/// How much is read at once at first. Most agents print little, and each has its own buffer.
const FIRST_READ_BYTES: usize = 4 << 10;
/// The maximum read at once: the default size of a pipe.
const READ_BYTES: usize = 64 << 10;
/// The thread needs little; its buffer is on the heap.
const STACK_BYTES: usize = 128 << 10;
/// Output that follows the output before it within this time is part of a flood.
const FLOOD_GAP: Duration = Duration::from_millis(1);
/// How long the thread pauses in a flood, while the pipe collects output. Without the pause, each line would wake the
/// thread and then the server. On a busy machine that took most of the agent's share of the processor.
const FLOOD_PAUSE: Duration = Duration::from_micros(250);

/// What the copier must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
enum Order {
    Copy,
    /// All processes of the run have ended: copy what is still in the pipe, and end.
    Finish,
    /// The same, without waiting for space on a full disk.
    GiveUp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Copying,
    /// Nothing more can be written, and `patience` is over.
    Stuck,
    Ended(Option<Unkept>),
}

/// The supervisor's handle of the thread that copies.
pub(super) struct OutputCopier {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
}

struct Shared {
    order: AtomicU8,
    /// Readable when the order has changed.
    changed: OwnedFd,
}

impl OutputCopier {
    /// Starts the thread. `patience` is how long output may wait for space on a full disk.
    pub(super) fn start<W: Write + Send + 'static>(
        pipe: PipeReader,
        spool: W,
        patience: Duration,
    ) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        let changed = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { order: AtomicU8::new(Order::Copy as u8), changed });
        let (state, seen) = watch::channel(State::Copying);
        let copy = Copier {
            pipe,
            spool,
            patience,
            shared: Arc::clone(&shared),
            state,
            buffer: vec![0; FIRST_READ_BYTES],
            held: 0,
            full_since: None,
        };
        thread::Builder::new().name("output".to_owned()).stack_size(STACK_BYTES).spawn(move || copy.run())?;
        Ok(Self { shared, state: seen })
    }

    /// Waits until the output is stuck. May be dropped at any await.
    pub(super) async fn stuck(&mut self) {
        if self.state.wait_for(|state| *state == State::Stuck).await.is_err() {
            // The thread has ended, so the output cannot get stuck any more.
            std::future::pending::<()>().await;
        }
    }

    /// Copies only what is in the pipe now, and then ends.
    pub(super) fn finish(&self) {
        self.shared.tell(Order::Finish);
    }

    /// The same, but gives up output that does not fit on the disk at once.
    pub(super) fn give_up(&self) {
        self.shared.tell(Order::GiveUp);
    }

    /// Waits until the spool is final. Returns the output that is missing from it. May be dropped at any await.
    pub(super) async fn ended(&mut self) -> Option<Unkept> {
        match self.state.wait_for(|state| matches!(state, State::Ended(_))).await.as_deref() {
            Ok(State::Ended(unkept)) => unkept.clone(),
            // The thread has panicked.
            _ => Some(Unkept {
                bytes: 0,
                cause: RunFailure { text: "copying the output failed".to_owned(), disk_full: false },
            }),
        }
    }
}

impl Shared {
    fn tell(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::SeqCst);
        // The write fails if the counter is full. Then the thread has been woken already.
        let _ = rustix::io::write(&self.changed, &1_u64.to_ne_bytes());
    }

    fn is(&self, order: Order) -> bool {
        order as u8 <= self.order.load(Ordering::SeqCst)
    }
}

/// The work of the thread.
struct Copier<W> {
    pipe: PipeReader,
    spool: W,
    patience: Duration,
    shared: Arc<Shared>,
    state: watch::Sender<State>,
    buffer: Vec<u8>,
    /// How many bytes were read from the pipe and are not in the spool yet.
    held: usize,
    /// Since when the spool takes no output.
    full_since: Option<Instant>,
}

impl<W: Write> Copier<W> {
    fn run(mut self) {
        let unkept = self.copy().err().map(|error| {
            let waits = ioctl_fionread(&self.pipe).unwrap_or(0);
            Unkept { bytes: self.held as u64 + waits, cause: RunFailure::from(&error) }
        });
        self.state.send_replace(State::Ended(unkept));
    }

    /// Copies until no process has the pipe open for writing, or until the order is to finish.
    fn copy(&mut self) -> io::Result<()> {
        let mut pace = Pace::default();
        while !self.shared.is(Order::Finish) {
            self.wait_for_output()?;
            match self.copy_some(READ_BYTES)? {
                Some(0) => return Ok(()),
                // No pause for large pieces: they have been collected already.
                Some(read) if pace.is_flood(Instant::now()) && read < READ_BYTES / 2 => self.pause_in_flood(),
                Some(_) | None => {}
            }
        }
        // A process that still has the pipe open does not belong to the run. The copy does not wait for it.
        let mut left = ioctl_fionread(&self.pipe)?;
        while 0 < left {
            match self.copy_some(READ_BYTES.min(usize::try_from(left).unwrap_or(READ_BYTES)))? {
                Some(0) | None => break,
                Some(copied) => left -= copied as u64,
            }
        }
        Ok(())
    }

    fn wait_for_output(&self) -> io::Result<()> {
        let mut awaited = [self.pipe.as_fd(), self.shared.changed.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut awaited, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Pauses for a moment, unless the order changes.
    fn pause_in_flood(&self) {
        let awaited = PollFd::new(&self.shared.changed, PollFlags::IN);
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(FLOOD_PAUSE.subsec_nanos()) };
        // A signal only shortens the pause.
        let _ = poll(&mut [awaited], Some(&pause));
    }

    /// Copies what is in the pipe, at most `most` bytes. Returns how many bytes that were: 0 if no process has the pipe
    /// open for writing, `None` if the pipe is empty.
    fn copy_some(&mut self, most: usize) -> io::Result<Option<usize>> {
        let most = most.min(self.buffer.len());
        match self.pipe.read(&mut self.buffer[..most]) {
            Ok(read) => {
                self.keep(read)?;
                if read == self.buffer.len() && read < READ_BYTES {
                    self.buffer = vec![0; 2 * read];
                }
                Ok(Some(read))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the first `read` bytes of the buffer to the spool, as soon as it takes them.
    fn keep(&mut self, read: usize) -> io::Result<()> {
        self.held = read;
        while 0 < self.held {
            match self.spool.write(&self.buffer[read - self.held..read]) {
                Ok(0) => self.refused(ErrorKind::WriteZero.into())?,
                Ok(written) => (self.held, self.full_since) = (self.held - written, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.refused(error)?,
            }
        }
        Ok(())
    }

    /// Waits before the next try. Returns the error if there must be no next try.
    fn refused(&mut self, error: io::Error) -> io::Result<()> {
        let since = *self.full_since.get_or_insert_with(Instant::now);
        let is_hopeless = !is_disk_full(&error) || self.patience <= since.elapsed();
        if self.shared.is(Order::GiveUp) || (is_hopeless && self.shared.is(Order::Finish)) {
            return Err(error);
        }
        if is_hopeless && *self.state.borrow() == State::Copying {
            // The supervisor ends the agent now, which may free space. Then it sends the order to finish.
            self.state.send_replace(State::Stuck);
        }
        let _ = rustix::io::read(&self.shared.changed, &mut [0; 8]);
        // The order may have come before the line above.
        if !self.shared.is(Order::GiveUp) {
            let awaited = PollFd::new(&self.shared.changed, PollFlags::IN);
            let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(WRITE_AGAIN.subsec_nanos()) };
            let _ = poll(&mut [awaited], Some(&pause));
        }
        Ok(())
    }
}

/// Distinguishes a flood from lines that come one by one.
#[derive(Debug, Default)]
struct Pace {
    copied_at: Option<Instant>,
}

impl Pace {
    /// Whether the output that was copied now came soon after the output before it.
    fn is_flood(&mut self, now: Instant) -> bool {
        let before = self.copied_at.replace(now);
        before.is_some_and(|before| now.saturating_duration_since(before) < FLOOD_GAP)
    }
}

#[cfg(test)]
mod tests;
