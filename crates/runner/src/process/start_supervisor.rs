//! Starts the supervisor of a run.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::SupervisorProgram;
use super::watch::FolderWatch;
use crate::run_folder::{ExitRecord, RunFolder, SupervisorRecord, blocking};

/// How many supervisors start at once, of all agent types. Others wait. Loading a program takes processor time: without
/// this limit, requests took seconds while 1,000 agents were launched.
static STARTING: Semaphore = Semaphore::const_new(4);

/// The outcome of starting a supervisor program.
enum Start {
    Introduced(Introduction),
    /// The program has ended without a record.
    Ended(ExitStatus),
}

/// What a supervisor has written first.
pub(super) enum Introduction {
    /// Which process it is.
    Itself(SupervisorRecord),
    /// Only how the run ended.
    EndOfRun,
}

impl Introduction {
    pub(super) fn supervisor(self) -> Option<SupervisorRecord> {
        match self {
            Self::Itself(record) => Some(record),
            Self::EndOfRun => None,
        }
    }
}

/// Starts a supervisor, and waits until it has written its record. `None` if the run has ended without one.
///
/// It writes the record before it starts the agent. If the agent cannot be started, `exec.json` says why, and the end
/// of the run reports it.
pub(super) async fn start_supervisor(
    program: &SupervisorProgram,
    folder: &RunFolder,
    watch: &FolderWatch,
    patience: Duration,
    supervisors: &TaskTracker,
) -> io::Result<Option<SupervisorRecord>> {
    let _place = STARTING.acquire().await.map_err(io::Error::other)?;
    let started = async {
        if let Some(small) = program.small_command(folder.path()) {
            match start(small, folder, watch, supervisors).await {
                Ok(Start::Introduced(known)) => return Ok(known.supervisor()),
                Ok(Start::Ended(status)) => {
                    if !program.give_up_if_refused(status) {
                        return Err(ended(status));
                    }
                }
                Err(error) => {
                    if !program.give_up_if_unusable(&error) {
                        return Err(error);
                    }
                }
            }
            // The small program has done nothing, so the server's own program can take over.
        }
        match start(program.own_command(folder.path()), folder, watch, supervisors).await? {
            Start::Introduced(known) => Ok(known.supervisor()),
            Start::Ended(status) => Err(ended(status)),
        }
    };
    timeout(patience, started).await?
}

fn ended(status: ExitStatus) -> io::Error {
    io::Error::other(format!("the supervisor exited: {status}"))
}

async fn start(
    command: Command,
    folder: &RunFolder,
    watch: &FolderWatch,
    supervisors: &TaskTracker,
) -> io::Result<Start> {
    let mut ended = spawn(command, supervisors).await?;
    loop {
        if let Some(known) = introduced(folder).await? {
            return Ok(Start::Introduced(known));
        }
        tokio::select! {
            () = watch.changed() => {}
            status = &mut ended => {
                let status = status.map_err(io::Error::other)?;
                // It may have written its record just before it ended.
                return Ok(introduced(folder).await?.map_or(Start::Ended(status), Start::Introduced));
            }
        }
    }
}

/// Starts the program, whose `main` continues in `supervisor/command.rs`. The receiver gets the program's exit status.
async fn spawn(mut command: Command, supervisors: &TaskTracker) -> io::Result<oneshot::Receiver<ExitStatus>> {
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The call blocks until the program has been loaded. On a thread of the runtime, followers would wait with it.
    let mut child = blocking(move || command.spawn()).await?;
    let (ended, seen) = oneshot::channel();
    supervisors.spawn(async move {
        if let Ok(status) = child.wait().await {
            // There is no receiver any more once the supervisor has written its record.
            let _ = ended.send(status);
        }
    });
    Ok(seen)
}

/// What the supervisor has written. `None` if it has written nothing yet.
pub(super) async fn introduced(folder: &RunFolder) -> io::Result<Option<Introduction>> {
    let folder = folder.clone();
    blocking(move || {
        if let Some(supervisor) = folder.read(RunFolder::SUPERVISOR)? {
            return Ok(Some(Introduction::Itself(supervisor)));
        }
        Ok(folder.read::<ExitRecord>(RunFolder::EXIT)?.map(|_| Introduction::EndOfRun))
    })
    .await
}
