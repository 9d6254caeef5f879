//! Turns that run in the process of an earlier turn. Between turns, that process is idle.
//!
//! The server writes `further.json` and sends [`ConverseMessage::Further`]. The `converse` process writes
//! [`AddedLine::Further`] into the spool, and only then passes the prompt to the program. So the spool says whether the
//! program got the prompt, and the turn's output begins with that line.

use std::io;
use std::time::Duration;

use tokenrail_domain::{ImageFile, TurnNumber};
use tokenrail_ports::{AddedLine, IAgentRun, RunOutput, RunnerError};
use tokio::time::timeout;

use super::run::{ProcessRun, is_line, is_unread};
use crate::run_folder::{ConverseMessage, FurtherRun, RunFolder, blocking};

/// How long the `converse` process may take to begin a further turn. Its answer is one line.
const FURTHER_PATIENCE: Duration = Duration::from_secs(5);

impl ProcessRun {
    /// Starts a further turn in an idle process. Returns the run of that turn, of which nothing has been read. `None`
    /// if the process ended before it got the prompt. A process that does not react is ended.
    pub(super) async fn ask(
        mut self,
        run: TurnNumber,
        prompt: String,
        images: Vec<ImageFile>,
    ) -> Result<Option<Self>, RunnerError> {
        let folder = self.folder().clone();
        let (run, behind) = (run.0.into(), self.begins());
        let written = blocking(move || {
            let images = folder.write_images(run, &images)?;
            let further = FurtherRun { run, prompt, images, behind, stderr_begins: folder.stderr_bytes()? };
            folder.write(RunFolder::FURTHER, &further)?;
            Ok(further)
        });
        let told = async {
            let further = written.await?;
            match self.tell(&ConverseMessage::Further { further: run }).await {
                // The `converse` process has ended. What is left to read is the end of the run.
                Err(error) if is_unread(&error) => Ok(further),
                told => told.map(|()| further),
            }
        };
        match told.await {
            Ok(further) => self.when_asked(&further).await,
            Err(error) => {
                self.dismiss().await;
                Err(error.into())
            }
        }
    }

    /// Waits until the process has begun the further turn, and returns the run of that turn. The server may have been
    /// restarted since it wrote `further.json`. `None` if the process never got the prompt. The process is ended then.
    pub(super) async fn when_asked(mut self, further: &FurtherRun) -> Result<Option<Self>, RunnerError> {
        let asked = match timeout(FURTHER_PATIENCE, self.until_asked(further.run)).await {
            Ok(asked) => asked,
            Err(_) => match self.cancel().await {
                Ok(()) => self.until_asked(further.run).await,
                Err(error) => Err(error),
            },
        };
        match asked {
            Ok(Some(begins)) => Ok(Some(self.beginning_at(further.behind + begins, further.stderr_begins))),
            Ok(None) => {
                self.dismiss().await;
                Ok(None)
            }
            Err(error) => {
                self.dismiss().await;
                Err(error)
            }
        }
    }

    /// Waits until the spool says that the program got the prompt. Returns where that line begins. `None` if the
    /// process ended before.
    async fn until_asked(&mut self, run: u64) -> Result<Option<u64>, RunnerError> {
        let asked = serde_json::to_vec(&AddedLine::Further { turn: run }).map_err(io::Error::from)?;
        loop {
            match self.next().await? {
                RunOutput::Lines(lines) => {
                    if let Some(line) = lines.iter().find(|line| is_line(line, &asked)) {
                        return Ok(Some(line.end_offset - asked.len() as u64 - 1));
                    }
                }
                RunOutput::Progress { .. } => {}
                RunOutput::Ended(_) => return Ok(None),
            }
        }
    }
}
