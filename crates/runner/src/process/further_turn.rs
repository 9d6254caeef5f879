//! The turns that follow in the process of an earlier one: between them, that process rests.
//!
//! The server writes `further.json` and says so; whoever speaks with the program writes [`further_line`] into the spool,
//! and tells the program then. So the spool says whether the program was asked, and the turn's output begins with that
//! line.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use tokenrail_domain::{AgentId, TurnNumber};
use tokenrail_ports::{IAgentRun, Line, OutputLine, RunOutput, RunnerError};
use tokio::net::unix::pipe;
use tokio::time::{sleep, timeout};

use super::RunFolder;
use super::leftovers::folders_of;
use super::run::{ProcessRun, blocking, is_unread};
use crate::converse::{ANSWER_BYTES, FurtherTurn, RESTS, Told, further_line};

/// How long something may wait for room on its way to the agent.
const TELL_PATIENCE: Duration = Duration::from_secs(1);
/// How long whoever was told of a further turn may take to take it up. The answer is one line.
const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// How often the end of a process is asked for that nobody needs any more, and how long between.
const STOP_TRIES: u32 = 5;
const STOP_PAUSE: Duration = Duration::from_millis(200);

/// The run that goes on with a turn which has none of its own. It blocks.
pub(super) fn run_of(
    runs: &Path,
    agent: AgentId,
    turn: TurnNumber,
) -> io::Result<Option<(RunFolder, FurtherTurn)>> {
    for folder in folders_of(runs, agent)? {
        let further: Option<FurtherTurn> = folder.read(RunFolder::FURTHER)?;
        if let Some(further) = further.filter(|further| further.turn == u64::from(turn.0)) {
            return Ok(Some((folder, further)));
        }
    }
    Ok(None)
}

/// Whether a line says that its turn has ended, and that the process waits for a further one.
pub(super) fn is_rest(line: &OutputLine) -> bool {
    is(line, RESTS)
}

fn is(line: &OutputLine, text: &[u8]) -> bool {
    matches!(&line.line, Line::Whole(whole) if **whole == *text)
}

impl ProcessRun {
    /// Asks a process that rests for a further turn. Gives the run of that turn, of which nothing has been read; none
    /// where the process has ended without having been asked. One that does not hear is ended.
    pub(super) async fn ask(mut self, turn: TurnNumber, prompt: String) -> Result<Option<Self>, RunnerError> {
        let folder = self.folder().clone();
        let (turn, behind) = (turn.0.into(), self.begins());
        let written = blocking(move || {
            let further = FurtherTurn { turn, prompt, behind, stderr_begins: folder.stderr_bytes()? };
            folder.write(RunFolder::FURTHER, &further)?;
            Ok(further)
        });
        let told = async {
            let further = written.await?;
            match self.tell(&Told::Further { further: turn }).await {
                // Nobody listens any more: what is left is its end.
                Err(error) if is_unread(&error) => Ok(further),
                told => told.map(|()| further),
            }
        };
        match told.await {
            Ok(further) => self.when_asked(&further).await,
            Err(error) => {
                self.end().await;
                Err(error.into())
            }
        }
    }

    /// The run of a further turn of which an earlier server has told the process, or was about to. Who was not asked by
    /// that is not asked any more.
    pub(super) async fn when_asked(mut self, further: &FurtherTurn) -> Result<Option<Self>, RunnerError> {
        let asked = match timeout(ASK_PATIENCE, self.until_asked(further.turn)).await {
            Ok(asked) => asked,
            Err(_) => match self.cancel().await {
                Ok(()) => self.until_asked(further.turn).await,
                Err(error) => Err(error),
            },
        };
        match asked {
            Ok(Some(begins)) => Ok(Some(self.beginning_at(further.behind + begins, further.stderr_begins))),
            Ok(None) => {
                self.end().await;
                Ok(None)
            }
            Err(error) => {
                self.end().await;
                Err(error)
            }
        }
    }

    /// Waits until the spool says that the program was asked; gives where that line begins. None where the process has
    /// ended before.
    async fn until_asked(&mut self, turn: u64) -> Result<Option<u64>, RunnerError> {
        let asked = further_line(turn);
        loop {
            match self.next().await? {
                RunOutput::Lines(lines) => {
                    if let Some(line) = lines.iter().find(|line| is(line, &asked)) {
                        return Ok(Some(line.end_offset - asked.len() as u64 - 1));
                    }
                }
                RunOutput::Progress { .. } => {}
                RunOutput::Ended(_) => return Ok(None),
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
        let run = match self.reopen(home.watcher.clone()).await {
            Ok(run) => run.beginning_at(self.begins() + rests_at, 0),
            Err(error) => {
                // It cannot be waited for, and so it is not kept.
                self.end().await;
                return Err(error);
            }
        };
        let is_worth_it = home.keeps && !run.keeps_spool() && !run.fills_disk();
        home.resting.keep(home.agent, home.kind, run, is_worth_it);
        Ok(())
    }

    /// Ends a process that rests, and removes what is left of its run.
    pub(super) async fn end(&mut self) {
        let folder = self.folder().path().display().to_string();
        if let Err(error) = self.stop_and_remove().await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                folder,
                error,
                "a process that waited for its agent's next turn is left as it is"
            );
        }
    }

    async fn stop_and_remove(&mut self) -> Result<(), RunnerError> {
        let mut tries = 1;
        while let Err(error) = self.cancel().await {
            if STOP_TRIES <= tries {
                return Err(error);
            }
            tries += 1;
            sleep(STOP_PAUSE).await;
        }
        while !matches!(self.next().await?, RunOutput::Ended(_)) {}
        Ok(self.remove().await?)
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
