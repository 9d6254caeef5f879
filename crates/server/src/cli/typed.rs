//! What the user types while an agent is followed.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, isatty, tcflush, tcgetpgrp};
use tokio::sync::mpsc;

/// The longest line that is read, in bytes. A terminal passes on no longer ones.
const LINE_BYTES: usize = 4096;
/// How many lines may wait.
const LINES_MAX: usize = 16;
/// How long the thread waits for input until it looks whether anybody still wants it.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// The pause between two looks whether a process in the background is in the foreground again.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(200);

/// The lines that the user types on the terminal from now on.
pub(crate) struct TypedLines(mpsc::Receiver<String>);

impl TypedLines {
    /// Begins to read, in a thread that ends soon after the lines are dropped. What was typed before is discarded.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        thread::Builder::new()
            .name("typed".to_owned())
            .spawn(move || while read_line(&sender).is_some() {})?;
        let mut lines = Self(receiver);
        lines.discard();
        Ok(lines)
    }

    /// Waits for the next line. `None` if there will be none.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// Discards what has been typed so far. It was not meant for what is shown only now.
    pub(crate) fn discard(&mut self) {
        // The kernel would stop a process in the background that flushes the terminal. What is typed there is meant for
        // another program.
        if !is_in_background() {
            // If this fails, standard input is not a terminal any more.
            let _ = tcflush(stdin(), QueueSelector::IFlush);
        }
        while self.0.try_recv().is_ok() {}
    }
}

/// Whether a user can type on standard input.
pub(crate) fn can_type() -> bool {
    isatty(stdin())
}

/// Passes on a line if one comes soon. `None` if nobody wants more lines, or if none can come.
fn read_line(lines: &mpsc::Sender<String>) -> Option<()> {
    let mut input = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let ready = poll(&mut input, Some(&WAIT)).unwrap_or_default();
    if lines.is_closed() {
        return None;
    }
    if ready == 0 {
        return Some(());
    }
    // The kernel would stop a process in the background that reads from the terminal.
    if is_in_background() {
        // The input stays, and `poll` would return at once.
        thread::sleep(BACKGROUND_PAUSE);
        return Some(());
    }
    let mut line = [0; LINE_BYTES];
    match rustix::io::read(stdin(), &mut line) {
        // Ctrl-D, or the terminal has gone.
        Ok(0) | Err(_) => None,
        Ok(read) => {
            // If so many lines wait, this one was not meant as an answer.
            let _ = lines.try_send(String::from_utf8_lossy(&line[..read]).into_owned());
            Some(())
        }
    }
}

/// Whether another group of processes has the terminal. Without job control there is no other.
fn is_in_background() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp())
}
