//! What happens to a run, other than that it prints output or that a batch is saved.

use tokenrail_ports::{RunEnd, RunnerError};

use super::Pump;
use super::waits::Signal;
use crate::core::SaveError;
use crate::requests_of_run::Answering;
use crate::timers::Expired;
use crate::verdict::Stop;

/// What the loop of a pump reacts to with a step that may take long.
pub(super) enum Interruption {
    Signal(Signal),
    Answer(Answering),
    /// The agent is to be asked to stop once more.
    AskAgain,
    /// The disk is still full.
    DiskFull,
    Expired(Expired),
    Ended(RunEnd),
    Unreadable(RunnerError),
}

impl Pump {
    /// Reacts to an interruption. Returns true if the run has ended, and everything is saved.
    pub(super) async fn react(&mut self, interruption: Interruption) -> Result<bool, SaveError> {
        match interruption {
            Interruption::Signal(Signal::Closing) => return Err(SaveError::Closing),
            Interruption::Signal(Signal::Stop) if self.stopping.why.is_none() => self.stop_as_told().await,
            Interruption::Signal(Signal::Stop) => {}
            Interruption::Answer(answering) => self.answer(answering).await,
            Interruption::AskAgain => self.ask_to_stop().await,
            Interruption::DiskFull => self.free_spool().await,
            Interruption::Expired(expired) => self.stop(Stop::Expired(expired)).await,
            Interruption::Ended(end) => {
                self.finish(end).await?;
                return Ok(true);
            }
            Interruption::Unreadable(error) => {
                // An agent whose output can no longer be read must not keep running unseen.
                self.abort().await;
                let end = RunEnd { error: Some(error.to_agent_error()), ..RunEnd::default() };
                self.finish(end).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
