//! Stopping a run. A reason that can be saved ([`Stop::reason`]) is saved before the agent is asked to stop. If the
//! store does not answer, the agent is stopped all the same.

use tokenrail_domain::StopReason;
use tokenrail_ports::{RunEnd, RunOutput};
use tokio::time::{Instant, timeout};

use super::Pump;
use super::waits::passed;
use crate::verdict::{Flood, Stop};

/// The progress of stopping the run.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    /// Why the run is being stopped. `None` if it is not.
    pub(super) why: Option<Stop>,
    /// When the agent is asked again, if asking failed.
    pub(super) again: Option<Instant>,
    /// How many times the agent was asked.
    asked: u32,
    /// The agent printed more than a limit allows: the rest is left out.
    pub(super) flooded: bool,
}

impl Pump {
    /// Stops the run for a reason that is saved already.
    pub(super) async fn carry_out(&mut self, stop: Stop) {
        self.release();
        self.stopping.why = Some(stop);
        self.ask_to_stop().await;
    }

    /// Stops the run because it was cancelled, or because the server shuts down and stops its agents. The use case has
    /// saved a cancel already. A shutdown is saved here as a cancel, unless this node leaves the others.
    pub(super) async fn stop_as_told(&mut self) {
        if self.cancel.is_cancelled() {
            self.carry_out(Stop::Cancelled).await;
        } else if self.core.is_leaving() {
            self.stop(Stop::NodeStops).await;
        } else {
            self.stop(Stop::Cancelled).await;
        }
    }

    /// Stops the run. Its reason, if it has one, is saved first: if the server crashes now, the next start finishes the
    /// stop, and comes to the same verdict. If another reason was saved before, that one counts.
    pub(super) async fn stop(&mut self, stop: Stop) {
        self.release();
        let earlier = match stop.reason() {
            Some(reason) => self.save_reason(reason).await.filter(|first| *first != reason),
            None => None,
        };
        self.stopping.why = Some(earlier.map_or(stop, Stop::of));
        self.ask_to_stop().await;
    }

    /// Saves why the turn is being stopped, and returns the reason that was saved first.
    async fn save_reason(&mut self, reason: StopReason) -> Option<StopReason> {
        let saved = self.core.outside.agents.stop_turn(self.agent.turn(self.recorder.turn()), reason);
        // A store that does not answer must not keep an agent from being stopped.
        let saved = timeout(self.core.limits.saving.retry_pause_max, saved).await;
        if let Ok(Ok(first)) = saved {
            return first;
        }
        tracing::warn!(agent = %self.agent, ?saved, "cannot save why the agent is being stopped");
        None
    }

    /// Stops the run because its output exceeds a limit. If the run is not being stopped for another reason, the rest
    /// of its output is left out.
    pub(super) async fn flood(&mut self, flood: Flood) {
        if self.stopping.why.is_none() {
            self.stop(Stop::Flood(flood)).await;
        }
        self.stopping.flooded = matches!(self.stopping.why, Some(Stop::Flood(_)));
    }

    /// Asks the agent to stop. If that fails, the agent is asked again later, [`stop_tries`] times in all.
    ///
    /// The next step is `cancel` of the runner's run: for a process, `ProcessRun::cancel` (`process/run.rs` in the
    /// runner crate). A `ReusableRun` passes the call on to it.
    ///
    /// [`stop_tries`]: crate::CommandLimits::stop_tries
    pub(super) async fn ask_to_stop(&mut self) {
        self.stopping.asked += 1;
        self.stopping.again = None;
        let Err(error) = self.run.cancel().await else { return };
        let error = &error as &dyn std::error::Error;
        if self.stopping.asked < self.core.limits.commands.stop_tries {
            tracing::warn!(agent = %self.agent, error, "cannot stop the agent; retrying");
            self.stopping.again = Some(Instant::now() + self.core.limits.saving.retry_pause);
        } else {
            // Nothing else can be done here. If the run ends all the same, its output shows that.
            tracing::error!(agent = %self.agent, error, "cannot stop the agent");
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.why.is_some() || self.cancel.is_cancelled()
    }

    /// Stops the run and waits until its process is gone, even if the process is idle and could serve the agent's
    /// next turn. The remaining output is left out.
    pub(super) async fn until_gone(&mut self) -> RunEnd {
        self.ask_to_stop().await;
        self.ask_until_told().await;
        loop {
            match self.run.next().await {
                Ok(RunOutput::Lines(lines)) => lines.iter().for_each(|line| self.recorder.leave_out(line)),
                Ok(RunOutput::Progress { .. }) => {}
                Ok(RunOutput::Ended(end)) => return end,
                Err(error) => return RunEnd { error: Some(error.to_agent_error()), ..RunEnd::default() },
            }
        }
    }

    async fn ask_until_told(&mut self) {
        while self.stopping.again.is_some() {
            passed(self.stopping.again).await;
            self.ask_to_stop().await;
        }
    }

    /// Stops the agent, and discards the output that it still prints.
    pub(super) async fn abort(&mut self) {
        if self.stopping.why.is_none() {
            self.stop(Stop::Unread).await;
        }
        self.ask_until_told().await;
        while let Ok(RunOutput::Lines(_) | RunOutput::Progress { .. }) = self.run.next().await {}
    }
}
