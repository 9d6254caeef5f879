//! What a run tells its supervisor, and whoever speaks with the agent: each has a FIFO in the run folder.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::ProcessRun;
use crate::process::ProcessLimits;
use crate::run_folder::{ANSWER_BYTES, Told};

/// What a supervisor gets beyond the graces of its agent.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(3);
/// How long there may be no room for what a supervisor is told.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// How long something may wait for room on its way to the agent.
const TELL_PATIENCE: Duration = Duration::from_secs(1);

impl ProcessRun {
    /// Says something to whoever speaks with the agent.
    pub(in crate::process) async fn tell(&self, told: &Told) -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        if ANSWER_BYTES < line.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let answers = pipe::OpenOptions::new().open_sender(self.folder.answers())?;
        // Whoever should read it may have been stopped: the turn goes on without it.
        timeout(TELL_PATIENCE, answers.writable()).await??;
        // It is shorter than what a pipe takes in one piece.
        answers.try_write(&line)?;
        Ok(())
    }

    /// How long a supervisor may take to stop its agent and to write down how it ended. An agent may have stopped its
    /// supervisor, for both are processes of the same user.
    pub(super) fn patience(&self) -> Duration {
        let ProcessLimits { cancel_grace_ms, leftover_grace_ms, kill_grace_ms, .. } = self.limits;
        Duration::from_millis(cancel_grace_ms + leftover_grace_ms + kill_grace_ms) + SUPERVISOR_PATIENCE
    }

    fn stop_command(&self) -> String {
        let ProcessLimits { cancel_grace_ms, kill_grace_ms, .. } = self.limits;
        format!("cancel {cancel_grace_ms} {kill_grace_ms}\n")
    }

    pub(super) async fn ask_to_stop(&self) -> io::Result<()> {
        let control = pipe::OpenOptions::new().open_sender(self.folder.control())?;
        let command = self.stop_command();
        // A command is shorter than what a pipe takes in one piece.
        match timeout(ASK_PATIENCE, control.writable()).await {
            Ok(writable) => writable?,
            // A supervisor that reads nothing counts as asked: it is killed if it does not stop in time.
            Err(_) => return Ok(()),
        }
        control.try_write(command.as_bytes())?;
        Ok(())
    }

    /// Asks for the end where nothing can be waited for any more.
    pub(in crate::process) fn ask_to_stop_now(&self) {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // Where nobody listens it has ended, or will when it has waited long enough.
        let _ = control
            .open(self.folder.control())
            .and_then(|mut control| control.write_all(self.stop_command().as_bytes()));
    }
}

/// Whether nobody reads it any more.
pub(in crate::process) fn is_unread(error: &io::Error) -> bool {
    let no_reader = rustix::io::Errno::NXIO.raw_os_error();
    error.raw_os_error() == Some(no_reader)
        || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BrokenPipe)
}
