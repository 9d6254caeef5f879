//! The turns that follow in the process of an earlier one: between them, that process rests.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::{IAgentRun, Line, OutputLine, RunOutput, RunnerError};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::RunFolder;
use super::leftovers::folders_of;
use super::run::{ProcessRun, blocking, is_unread};
use crate::converse::{ANSWER_BYTES, NextTurn, RESTS, Told, next_line};

/// How long something may wait for room on its way to the agent.
const TELL_PATIENCE: Duration = Duration::from_secs(1);

/// The run that goes on with a turn which has none of its own. It blocks.
pub(super) fn run_of(
    runs: &Path,
    agent: AgentId,
    turn: TurnNumber,
) -> io::Result<Option<(RunFolder, NextTurn)>> {
    for folder in folders_of(runs, agent)? {
        let next: Option<NextTurn> = folder.read(RunFolder::NEXT)?;
        if let Some(next) = next.filter(|next| next.turn == u64::from(turn.0)) {
            return Ok(Some((folder, next)));
        }
    }
    Ok(None)
}

/// Whether a line says that its turn has ended, and that the process waits for the next one.
pub(super) fn is_rest(line: &OutputLine) -> bool {
    matches!(&line.line, Line::Whole(text) if &**text == RESTS)
}

impl ProcessRun {
    /// Asks a process that rests for the next turn; false where it has ended without having been asked. One that does
    /// not answer in time is ended: then its output tells whether it was asked. That is still to be read afterwards.
    pub(super) async fn ask_next(&mut self, next: NextTurn, patience: Duration) -> Result<bool, RunnerError> {
        let (folder, turn) = (self.folder().clone(), next.turn);
        blocking(move || folder.write(RunFolder::NEXT, &next)).await?;
        match self.tell(&Told::Next { next: turn }).await {
            // Nobody listens any more: its end is to be seen.
            Err(error) if is_unread(&error) => {}
            told => told?,
        }
        if let Ok(taken) = timeout(patience, self.is_taken(turn)).await {
            return taken;
        }
        self.cancel().await?;
        self.is_taken(turn).await
    }

    async fn is_taken(&mut self, turn: u64) -> Result<bool, RunnerError> {
        let taken = next_line(turn);
        loop {
            match self.next().await? {
                RunOutput::Lines(lines) => {
                    let is_taken =
                        |line: &OutputLine| matches!(&line.line, Line::Whole(text) if *text == taken);
                    if lines.iter().any(is_taken) {
                        return Ok(true);
                    }
                }
                RunOutput::Progress { .. } => {}
                RunOutput::Ended(_) => return Ok(false),
            }
        }
    }

    /// Says something to whoever speaks with the agent.
    pub(super) async fn tell(&self, told: &Told) -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        if ANSWER_BYTES < line.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let answers = pipe::OpenOptions::new().open_sender(self.folder().answers())?;
        // Whoever should read it may have been stopped: the turn goes on without it.
        timeout(TELL_PATIENCE, answers.writable()).await??;
        // It is shorter than what a pipe takes in one piece.
        answers.try_write(&line)?;
        Ok(())
    }

    /// Leaves a turn that has ended: where the process rests it is kept for the next one, and otherwise nothing is.
    pub(super) async fn leave(&mut self) -> io::Result<()> {
        let Some((rests_at, home)) = self.rests_at().zip(self.take_home()) else {
            return self.remove().await;
        };
        let run = self.reopen(home.watcher).await?.beginning_at(self.begins() + rests_at);
        if run.keeps_spool() || self.limits().resting_spool_bytes < run.begins() {
            home.resting.end(run);
        } else {
            home.resting.keep(home.agent, home.kind, run);
        }
        Ok(())
    }

    /// Ends a process that rests, and removes what is left of its run.
    pub(super) async fn end(&mut self) {
        let folder = self.folder().path().display().to_string();
        if let Err(error) = self.cancel().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(folder, error, "a process that waits for its agent's next turn cannot be stopped");
        }
        while let Ok(RunOutput::Lines(_) | RunOutput::Progress { .. }) = self.next().await {}
        if let Err(error) = self.remove().await {
            tracing::warn!(
                folder,
                error = &error as &dyn std::error::Error,
                "a run folder cannot be removed"
            );
        }
    }

    async fn remove(&self) -> io::Result<()> {
        let (folder, keep_spool) = (self.folder().clone(), self.keeps_spool());
        blocking(move || if keep_spool { folder.keep_spool() } else { folder.remove() }).await
    }

    /// Asks for the end where nothing can be waited for any more.
    pub(super) fn ask_to_stop_now(&self) {
        let mut control = OpenOptions::new();
        control.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        // Where nobody listens it has ended, or will when it has waited long enough.
        let _ = control
            .open(self.folder().control())
            .and_then(|mut control| control.write_all(self.stop_command().as_bytes()));
    }
}
