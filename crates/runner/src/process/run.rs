//! One run of a process agent: the reader's side. The other side is the supervisor (`supervisor/supervise.rs`).
//!
//! The methods of [`ProcessRun`], by file:
//!
//! | file | methods |
//! | --- | --- |
//! | this one | `open`; the methods of the port [`IAgentRun`]: `next`, `cancel`, `answer`, `free_spool`, `leave` |
//! | [`spool`] | reading: `look`; a full disk: `empty_spool`; the end: `remove` |
//! | [`spool_part`] | which part of the spool belongs to this run |
//! | [`tell`] | the FIFOs of the run folder: `ask_to_stop` (supervisor), `tell` (`converse` process) |
//! | `further_run.rs` | a further turn in the same process: `ask`, `when_asked` |
//! | `idle_processes.rs` | an idle process: `dismiss`, `stop_and_remove` |
//!
//! `idle_processes.rs` also wraps a run whose process may stay idle: see `ReusableRun` there. The pump of the
//! application calls `next` for each further piece of output.

mod spool;
mod spool_part;
mod tell;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_ports::{
    AddedLine, ExitStatus, IAgentRun, Line, OutputLine, PermissionAnswer, RunEnd, RunOutput, RunnerError,
    SpaceWait, SpoolRoom,
};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use self::spool::{Fresh, FreshRead};
use self::spool_part::SpoolPart;
pub(super) use self::tell::is_unread;
use super::ProcessLimits;
use super::run_end::{left_over, run_end, with_unsaved};
use super::watch::{FolderWatch, RunWatcher};
use crate::deadline::passed;
use crate::run_folder::{
    Answer, ConverseMessage, ExitRecord, RunFolder, SupervisorRecord, blocking, kill_marked,
};

/// One run of a process agent: reads the spool as it grows.
pub(super) struct ProcessRun {
    folder: RunFolder,
    limits: ProcessLimits,
    spool: Arc<File>,
    fresh: FreshRead,
    part: SpoolPart,
    /// How the run ended, once its spool is being emptied.
    emptied: Option<ExitRecord>,
    watch: FolderWatch,
    supervisor: KnownSupervisor,
    /// How the run ended. The spool may still have unread output.
    end: Option<RunEnd>,
    cancelled: bool,
    /// When `wait_or_force_end` kills the supervisor, which was asked to stop the agent.
    force_at: Option<Instant>,
    /// A line was too long to be returned whole.
    keep_spool: bool,
}

/// Whether the process stays idle for a further turn after this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BecomesIdle {
    Never,
    NotYet,
    /// The turn has ended, and this is the length of its output in bytes.
    At(u64),
}

/// When to check the run folder again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextLook {
    Now,
    /// The spool was read to its end at that time. The watch reports later changes.
    WhenWoken,
}

enum KnownSupervisor {
    /// The descriptor is a pidfd and not a pipe. Only its readiness is used, which works the same for both.
    Alive(SupervisorRecord, pipe::Receiver),
    Gone,
}

/// What is new in the run folder.
enum Found {
    /// At least one byte.
    Output(Fresh),
    Exit(ExitRecord),
    Nothing,
}

impl ProcessRun {
    /// Reads the run from its first byte. `supervisor` is the record in the run folder, if there is one. This function
    /// checks whether that process still lives.
    pub(super) fn open(
        folder: RunFolder,
        limits: ProcessLimits,
        watch: FolderWatch,
        supervisor: Option<SupervisorRecord>,
    ) -> io::Result<Self> {
        let pidfd = supervisor.as_ref().map(SupervisorRecord::open).transpose()?.flatten();
        let supervisor = match (supervisor, pidfd) {
            (Some(record), Some(fd)) => {
                KnownSupervisor::Alive(record, pipe::Receiver::from_owned_fd_unchecked(fd)?)
            }
            _ => KnownSupervisor::Gone,
        };
        let spool = folder.spool_to_read()?;
        Ok(Self {
            fresh: FreshRead::of(&spool),
            spool: Arc::new(spool),
            folder,
            limits,
            part: SpoolPart::beginning_at(0, 0, limits.framer()),
            emptied: None,
            watch,
            supervisor,
            end: None,
            cancelled: false,
            force_at: None,
            keep_spool: false,
        })
    }

    /// Reads the output from these offsets on, as a run of which nothing has been read. How much of it is saved
    /// stays the same.
    pub(super) fn beginning_at(self, begins: u64, stderr_begins: u64) -> Self {
        let fresh = SpoolPart::beginning_at(begins, stderr_begins, self.limits.framer());
        Self { part: SpoolPart { committed: self.part.committed, ..fresh }, ..self }
    }

    /// Notices the end of the turn even if the process stays idle.
    pub(super) fn that_may_become_idle(self) -> Self {
        Self { part: SpoolPart { idle: BecomesIdle::NotYet, ..self.part }, ..self }
    }

    /// Sets how many bytes were saved before the server was restarted.
    pub(super) fn with_committed(self, committed: u64) -> Self {
        Self { part: SpoolPart { committed, ..self.part }, ..self }
    }

    /// Opens the same run again, from its first byte.
    pub(super) async fn reopen(&self, watcher: RunWatcher) -> io::Result<Self> {
        let folder = self.folder.clone();
        let watch = blocking(move || watcher.watch(folder.path())).await?;
        let supervisor = match &self.supervisor {
            KnownSupervisor::Alive(record, _) => Some(record.clone()),
            KnownSupervisor::Gone => None,
        };
        let again = Self::open(self.folder.clone(), self.limits, watch, supervisor)?;
        Ok(Self { keep_spool: self.keep_spool, ..again })
    }

    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Whether the spool is too long for an idle process.
    pub(super) fn fills_disk(&self) -> bool {
        self.limits.idle_spool_bytes < self.part.read_to()
    }

    pub(super) fn begins(&self) -> u64 {
        self.part.begins
    }

    pub(super) fn keeps_spool(&self) -> bool {
        self.keep_spool
    }

    /// The length of the turn's output in bytes, if the turn has ended and the process is idle. A process that is being
    /// stopped is not idle.
    pub(super) fn idle_at(&self) -> Option<u64> {
        match self.part.idle {
            BecomesIdle::At(bytes) if !self.cancelled => Some(bytes),
            _ => None,
        }
    }

    /// Takes the next complete lines from the framer, up to the line with which the process becomes idle. A line that
    /// is too long to be returned whole makes the run keep its spool.
    fn lines(&mut self) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        while lines.len() < self.limits.output_lines
            && self.idle_at().is_none()
            && let Some(line) = self.part.framer.next_line()
        {
            if self.part.idle != BecomesIdle::Never && is_line(&line, AddedLine::IDLE) {
                self.part.idle = BecomesIdle::At(line.end_offset);
            }
            lines.push(line);
        }
        self.keep_spool |= lines.iter().any(|line| matches!(line.line, Line::TooLong { .. }));
        lines
    }

    /// Waits until there may be news. `watch` reports changes of the run folder.
    ///
    /// This is also the last guarantee of a cancel: at `force_at`, kills the supervisor with all its descendants. If
    /// the supervisor is gone without a record, kills what is left of the run and sets `end`.
    async fn wait_or_force_end(&mut self) -> io::Result<()> {
        let KnownSupervisor::Alive(record, pidfd) = &self.supervisor else {
            self.end = Some(self.lost().await?);
            return Ok(());
        };
        tokio::select! {
            () = self.watch.changed() => {}
            () = passed(self.force_at) => {
                self.force_at = None;
                let supervisor = record.clone();
                tracing::warn!(folder = %self.folder.path().display(), "killing a supervisor that does not stop its agent");
                blocking(move || supervisor.kill_with_descendants()).await?;
            }
            gone = pidfd.readable() => {
                gone?;
                if record.open()?.is_none() {
                    self.supervisor = KnownSupervisor::Gone;
                } else {
                    // The runtime may wake without cause. `WouldBlock` clears the readiness, so that it waits again.
                    let _ = pidfd.try_io(|| Err::<(), _>(ErrorKind::WouldBlock.into()));
                }
            }
        }
        Ok(())
    }

    async fn ended(&self, exit: ExitRecord) -> io::Result<RunEnd> {
        let (folder, behind) = (self.folder.clone(), self.part.stderr_begins);
        let stderr = blocking(move || folder.stderr(behind)).await?;
        let kept = self.part.begins + self.part.offset.max(self.part.committed);
        Ok(run_end(with_unsaved(exit, kept), stderr))
    }

    /// The end of a run whose supervisor has died. The agent died with it, but the processes that the agent had started
    /// did not: they are killed here.
    async fn lost(&self) -> io::Result<RunEnd> {
        let (folder, behind, kill_grace_ms) =
            (self.folder.clone(), self.part.stderr_begins, self.limits.kill_grace_ms);
        let kill = move || Ok((folder.stderr(behind)?, kill_marked(&folder.marker(), kill_grace_ms)?));
        let (stderr, (reaped, left)) = blocking(kill).await?;
        Ok(RunEnd { status: ExitStatus::Lost, stderr, reaped, error: left_over(left), ..RunEnd::default() })
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
            if self.idle_at().is_some() {
                return Ok(RunOutput::Ended(RunEnd { idle: true, ..RunEnd::default() }));
            }
            let alive = matches!(self.supervisor, KnownSupervisor::Alive(..));
            if self.part.next_look == NextLook::WhenWoken && alive && self.end.is_none() {
                self.wait_or_force_end().await.map_err(RunnerError::Contact)?;
            }
            // Not earlier: if this future is dropped during the wait, the next call must wait again.
            self.part.next_look = NextLook::Now;
            match (self.look().await.map_err(RunnerError::Contact)?, &self.end) {
                (Found::Output(Fresh { output, to_end }), _) => {
                    if to_end {
                        self.part.next_look = NextLook::WhenWoken;
                    }
                    self.part.offset += output.len() as u64;
                    self.part.framer.feed(output);
                    let lines = self.lines();
                    // `Pump::carry` of the application crate takes them.
                    return Ok(if lines.is_empty() {
                        RunOutput::Progress { offset: self.part.offset }
                    } else {
                        RunOutput::Lines(lines)
                    });
                }
                // The output is complete before the record is written, so one more look finds the rest of it.
                (Found::Exit(exit), _) => {
                    self.end = Some(self.ended(exit).await.map_err(RunnerError::Contact)?);
                }
                (Found::Nothing, None) => self.wait_or_force_end().await.map_err(RunnerError::Contact)?,
                (Found::Nothing, Some(end)) => {
                    if !std::mem::replace(&mut self.part.finished, true)
                        && let Some(line) = self.part.framer.finish()
                    {
                        self.keep_spool |= matches!(line.line, Line::TooLong { .. });
                        return Ok(RunOutput::Lines(vec![line]));
                    }
                    // `Pump::carry` passes it to `finish` (`pump/finish.rs` of the application crate).
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
                // `wait_or_force_end` kills a supervisor that has not stopped its agent by then.
                self.force_at = Instant::now().checked_add(self.patience());
            }
            // The supervisor is gone. `next` ends the processes that it left behind.
            Err(error) if is_unread(&error) => {
                self.cancelled = true;
                self.supervisor = KnownSupervisor::Gone;
            }
            Err(error) => return Err(RunnerError::Contact(error)),
        }
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let PermissionAnswer { request_id, reply } = answer.clone();
        self.tell(&ConverseMessage::Answer(Answer::new(request_id, reply)))
            .await
            .map_err(RunnerError::Contact)
    }

    async fn free_spool(&mut self, wait: SpaceWait) -> Result<SpoolRoom, RunnerError> {
        self.empty_spool(wait).await
    }

    async fn leave(&mut self) {
        if let Err(error) = self.remove().await {
            self.warn_of_folder(&error);
        }
    }
}

/// Whether the line is exactly this text.
pub(super) fn is_line(line: &OutputLine, text: &[u8]) -> bool {
    matches!(&line.line, Line::Whole(whole) if **whole == *text)
}
