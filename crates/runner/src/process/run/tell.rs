//! Messages to the supervisor and to the `converse` process. Each has a FIFO in the run folder: `control` and
//! `answers`.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::ProcessRun;
use crate::process::ProcessLimits;
use crate::run_folder::{CancelLine, ConverseMessage, MESSAGE_BYTES};

/// How much longer than the graces of its agent a supervisor may take.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(3);
/// How long a command may wait for room in the FIFO of the supervisor.
const CONTROL_PATIENCE: Duration = Duration::from_secs(1);
/// How long a message may wait for room in the FIFO of the `converse` process.
const TELL_PATIENCE: Duration = Duration::from_secs(1);

impl ProcessRun {
    /// Sends a message to the `converse` process, which reads it in `converse/fifo.rs`.
    ///
    /// # Errors
    /// If the message is too long, if nobody reads the FIFO ([`is_unread`]), or if the FIFO stays full.
    pub(in crate::process) async fn tell(&self, message: &ConverseMessage) -> io::Result<()> {
        // A pipe takes a long line in pieces. The last message may have been cut off in the middle of its line, so this
        // one begins a new line.
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, message)?;
        line.push(b'\n');
        if MESSAGE_BYTES < line.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut fifo = pipe::OpenOptions::new().open_sender(self.folder.converse_fifo())?;
        // The reader may have been stopped by a signal. The turn goes on without the message.
        timeout(TELL_PATIENCE, fifo.write_all(&line)).await??;
        Ok(())
    }

    /// How long a supervisor may take to stop its agent and to record how it ended. The limit is necessary because an
    /// agent can stop its supervisor: both are processes of the same user.
    pub(super) fn patience(&self) -> Duration {
        let ProcessLimits { cancel_grace_ms, leftover_grace_ms, kill_grace_ms, .. } = self.limits;
        // Listing the processes may extend `kill_grace_ms` by half.
        let sweep_ms = leftover_grace_ms + kill_grace_ms + kill_grace_ms / 2;
        Duration::from_millis(cancel_grace_ms + sweep_ms) + SUPERVISOR_PATIENCE
    }

    fn stop_command(&self) -> String {
        let ProcessLimits { cancel_grace_ms, kill_grace_ms, .. } = self.limits;
        let (grace, kill) = (Duration::from_millis(cancel_grace_ms), Duration::from_millis(kill_grace_ms));
        CancelLine { grace, kill }.to_line()
    }

    /// Asks the supervisor to stop the agent. It reads that in `supervisor/control.rs`.
    pub(super) async fn ask_to_stop(&self) -> io::Result<()> {
        let control = pipe::OpenOptions::new().open_sender(self.folder.control())?;
        let command = self.stop_command();
        // A pipe takes a command in one piece.
        match timeout(CONTROL_PATIENCE, control.writable()).await {
            Ok(writable) => writable?,
            // A supervisor that reads nothing counts as asked: it is killed if it does not stop in time.
            Err(_) => return Ok(()),
        }
        control.try_write(command.as_bytes())?;
        Ok(())
    }

    /// Asks the supervisor to stop the agent, without waiting: for `drop`.
    pub(in crate::process) fn ask_to_stop_now(&self) {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // If nobody reads, the run has ended. If the command is lost, the process ends after its idle time.
        let _ = control
            .open(self.folder.control())
            .and_then(|mut control| control.write_all(self.stop_command().as_bytes()));
    }
}

/// Whether the error means that nobody reads the FIFO any more.
pub(in crate::process) fn is_unread(error: &io::Error) -> bool {
    let no_reader = rustix::io::Errno::NXIO.raw_os_error();
    error.raw_os_error() == Some(no_reader)
        || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BrokenPipe)
}
