//! One turn of a process agent.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokenrail_ports::{
    ExitStatus, IAgentRun, Line, OutputLine, PermissionAnswer, RunEnd, RunOutput, RunnerError,
};
use tokio::net::unix::pipe;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use super::end::{left_over, run_end};
use super::proc::kill_marked;
use super::watch::FolderWatch;
use super::{ExitRecord, ProcessLimits, RunFolder, SupervisorRecord};
use crate::LineFramer;
use crate::converse::{ANSWER_BYTES, Answer};

/// What a supervisor gets beyond the graces of its agent.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(3);

/// How long an answer may wait for room on its way to the agent.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// One turn of a process agent: reads the spool as it grows.
pub(super) struct ProcessRun {
    folder: RunFolder,
    /// `NAME=value` in the environment of every process of the run.
    marker: String,
    limits: ProcessLimits,
    spool: Arc<File>,
    /// How many bytes of the spool the framer was fed.
    offset: u64,
    framer: LineFramer,
    watch: FolderWatch,
    supervisor: Supervisor,
    /// How the run has ended; there may be more in the spool.
    end: Option<RunEnd>,
    next_look: NextLook,
    /// The framer has given all, the unfinished line too.
    finished: bool,
    cancelled: bool,
    /// When the supervisor, which was asked to stop the agent, has had its time.
    force_at: Option<Instant>,
    /// A line was too long to be given.
    keep_spool: bool,
}

/// When to look into the run folder again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextLook {
    Now,
    /// The spool was read to where it ended then: whatever comes later is told by the watch.
    WhenTold,
}

enum Supervisor {
    /// The descriptor is a pidfd and no pipe: only its readiness is asked for, and that is the same for both.
    Alive(SupervisorRecord, pipe::Receiver),
    Gone,
}

/// What the run folder holds that is new.
enum News {
    Output(Bytes),
    Exit(ExitRecord),
    Nothing,
}

impl ProcessRun {
    /// Reads the run from its first byte. `supervisor` is who said that it supervises the run, if anybody has; that
    /// it still lives is checked here.
    pub(super) fn open(
        folder: RunFolder,
        marker: String,
        limits: ProcessLimits,
        watch: FolderWatch,
        supervisor: Option<SupervisorRecord>,
    ) -> io::Result<Self> {
        let pidfd = supervisor.as_ref().map(SupervisorRecord::open).transpose()?.flatten();
        let supervisor = match (supervisor, pidfd) {
            (Some(record), Some(fd)) => {
                Supervisor::Alive(record, pipe::Receiver::from_owned_fd_unchecked(fd)?)
            }
            _ => Supervisor::Gone,
        };
        Ok(Self {
            spool: Arc::new(folder.spool_to_read()?),
            folder,
            marker,
            limits,
            offset: 0,
            framer: LineFramer::new(limits.framer()),
            watch,
            supervisor,
            end: None,
            next_look: NextLook::Now,
            finished: false,
            cancelled: false,
            force_at: None,
            keep_spool: false,
        })
    }

    /// Lines that were read already.
    fn lines(&mut self) -> Vec<OutputLine> {
        let lines: Vec<_> =
            std::iter::from_fn(|| self.framer.next_line()).take(self.limits.output_lines).collect();
        self.keep_spool |= lines.iter().any(|line| matches!(line.line, Line::TooLong { .. }));
        lines
    }

    async fn look(&self) -> io::Result<News> {
        let (spool, offset, read_bytes) = (Arc::clone(&self.spool), self.offset, self.limits.read_bytes);
        let folder = self.end.is_none().then(|| self.folder.clone());
        blocking(move || {
            let output = read_at(&spool, offset, read_bytes)?;
            if !output.is_empty() {
                return Ok(News::Output(output));
            }
            let exit = folder.map(|folder| folder.read(RunFolder::EXIT)).transpose()?;
            Ok(exit.flatten().map_or(News::Nothing, News::Exit))
        })
        .await
    }

    /// Waits until there may be news.
    async fn changed(&mut self) -> io::Result<()> {
        let Supervisor::Alive(record, pidfd) = &self.supervisor else {
            self.end = Some(self.lost().await?);
            return Ok(());
        };
        tokio::select! {
            () = self.watch.changed() => {}
            () = due(self.force_at) => {
                self.force_at = None;
                let supervisor = record.clone();
                tracing::warn!(folder = %self.folder.path().display(), "a supervisor does not stop its agent, and is killed");
                blocking(move || supervisor.kill_with_descendants()).await?;
            }
            gone = pidfd.readable() => {
                gone?;
                if record.open()?.is_none() {
                    self.supervisor = Supervisor::Gone;
                } else {
                    // A false alarm, which the runtime allows itself: it is told so, or it would not wait again.
                    let _ = pidfd.try_io(|| Err::<(), _>(ErrorKind::WouldBlock.into()));
                }
            }
        }
        Ok(())
    }

    async fn ended(&self, exit: ExitRecord) -> io::Result<RunEnd> {
        let folder = self.folder.clone();
        let stderr = blocking(move || folder.stderr()).await?;
        Ok(run_end(exit, stderr))
    }

    /// The end of a run whose supervisor has died. The agent has died with it, but not what the agent had started.
    async fn lost(&self) -> io::Result<RunEnd> {
        let (folder, marker, limits) = (self.folder.clone(), self.marker.clone(), self.limits);
        let (stderr, (reaped, left)) =
            blocking(move || Ok((folder.stderr()?, kill_marked(&marker, limits.kill_grace_ms)?))).await?;
        Ok(RunEnd { status: ExitStatus::Lost, stderr, reaped, error: left_over(left), disk_full: None })
    }

    /// How long a supervisor may take to stop its agent and to write down how it ended. An agent may have stopped its
    /// supervisor, for both are processes of the same user.
    fn patience(&self) -> Duration {
        let ProcessLimits { cancel_grace_ms, leftover_grace_ms, kill_grace_ms, .. } = self.limits;
        Duration::from_millis(cancel_grace_ms + leftover_grace_ms + kill_grace_ms) + SUPERVISOR_PATIENCE
    }

    async fn ask_to_stop(&self) -> io::Result<()> {
        let ProcessLimits { cancel_grace_ms, kill_grace_ms, .. } = self.limits;
        let control = pipe::OpenOptions::new().open_sender(self.folder.control())?;
        let command = format!("cancel {cancel_grace_ms} {kill_grace_ms}\n");
        // A command is shorter than what a pipe takes in one piece.
        control.writable().await?;
        control.try_write(command.as_bytes())?;
        Ok(())
    }
}

#[async_trait]
impl IAgentRun for ProcessRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        loop {
            let lines = self.lines();
            if !lines.is_empty() {
                return Ok(RunOutput::Lines(lines));
            }
            let alive = matches!(self.supervisor, Supervisor::Alive(..));
            let told = std::mem::replace(&mut self.next_look, NextLook::Now) == NextLook::WhenTold;
            if told && alive && self.end.is_none() {
                self.changed().await?;
            }
            match (self.look().await?, &self.end) {
                (News::Output(output), _) => {
                    if output.len() < self.limits.read_bytes {
                        self.next_look = NextLook::WhenTold;
                    }
                    self.offset += output.len() as u64;
                    self.framer.feed(output);
                    let lines = self.lines();
                    return Ok(if lines.is_empty() {
                        RunOutput::Progress { offset: self.offset }
                    } else {
                        RunOutput::Lines(lines)
                    });
                }
                // Before the record is written all processes have ended: one more look gives the last output.
                (News::Exit(exit), _) => self.end = Some(self.ended(exit).await?),
                (News::Nothing, None) => self.changed().await?,
                (News::Nothing, Some(end)) => {
                    if !std::mem::replace(&mut self.finished, true)
                        && let Some(line) = self.framer.finish()
                    {
                        self.keep_spool |= matches!(line.line, Line::TooLong { .. });
                        return Ok(RunOutput::Lines(vec![line]));
                    }
                    return Ok(RunOutput::Ended(end.clone()));
                }
            }
        }
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        if self.cancelled {
            return Ok(());
        }
        match self.ask_to_stop().await {
            Ok(()) => {
                self.cancelled = true;
                self.force_at = Instant::now().checked_add(self.patience());
            }
            // Nobody listens: the supervisor is gone, and `next` ends what it has left behind.
            Err(error) if is_unread(&error) => self.supervisor = Supervisor::Gone,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let PermissionAnswer { question, option } = answer.clone();
        let mut line = serde_json::to_vec(&Answer { request: question, option }).map_err(io::Error::from)?;
        line.push(b'\n');
        if ANSWER_BYTES < line.len() {
            return Err(io::Error::from(ErrorKind::InvalidInput).into());
        }
        let answers = pipe::OpenOptions::new().open_sender(self.folder.answers())?;
        // Whoever should read it may have been stopped: the turn goes on without it.
        timeout(ANSWER_PATIENCE, answers.writable()).await.map_err(io::Error::from)??;
        // It is shorter than what a pipe takes in one piece.
        answers.try_write(&line)?;
        Ok(())
    }

    async fn discard(&mut self) {
        let (folder, keep_spool) = (self.folder.clone(), self.keep_spool);
        let removed = blocking(move || if keep_spool { folder.keep_spool() } else { folder.remove() }).await;
        if let Err(error) = removed {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(folder = %self.folder.path().display(), error, "a run folder cannot be removed");
        }
    }
}

/// Waits for a moment that may never come.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn is_unread(error: &io::Error) -> bool {
    let no_reader = rustix::io::Errno::NXIO.raw_os_error();
    error.raw_os_error() == Some(no_reader)
        || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::BrokenPipe)
}

/// What there is after `offset`, at most `read_bytes`.
fn read_at(file: &File, offset: u64, read_bytes: usize) -> io::Result<Bytes> {
    let there = file.metadata()?.len().saturating_sub(offset).min(read_bytes as u64);
    // Exactly as large as needed: the lines are slices of it and keep all of it in memory.
    let mut output = vec![0; there as usize];
    let mut read = 0;
    while read < output.len() {
        match file.read_at(&mut output[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    output.truncate(read);
    Ok(output.into())
}

/// Runs file work where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
