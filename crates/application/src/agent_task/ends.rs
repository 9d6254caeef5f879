//! The end of a turn that has no run to end it.

use tokenrail_domain::Turn;
use tokenrail_ports::Append;
use tokio_util::sync::CancellationToken;

use super::AgentTask;
use super::resume::SoFar;
use crate::announce::save_and_announce;
use crate::core::SaveError;
use crate::recorder::Recorder;
use crate::verdict::Verdict;

impl AgentTask {
    /// Ends a turn whose agent was never started. Its prompt is part of the history all the same, and followers of
    /// the turn see its end.
    pub(super) async fn end_unstarted(&self, mut turn: Turn, verdict: Verdict) -> Result<(), SaveError> {
        let Some(agent) = self.agent_row().await? else { return Ok(()) };
        let now = self.core.now();
        let mut recorder = self.recorder(&agent, &turn, SoFar::nothing(now)).await?;
        self.fill_up(&mut recorder).await?;
        let message = self.user_message(&mut recorder, &mut turn);
        let both = message.into_iter().chain(recorder.take_end(verdict, now)).collect();
        match Append::chain(both) {
            Some(both) => save_and_announce(&self.core, &self.tail, both).await,
            None => Ok(()),
        }
    }

    /// Ends a turn that has no run to end it: the agent could not be started, or nothing is left of its run.
    pub(super) async fn end(&self, mut recorder: Recorder, verdict: Verdict) -> Result<(), SaveError> {
        match recorder.take_end(verdict, self.core.now()) {
            Some(append) => save_and_announce(&self.core, &self.tail, append).await,
            None => Ok(()),
        }
    }

    /// A turn that waits while the server stops its agents. It keeps waiting, unless the node leaves and the agent
    /// needs it: nobody would run it.
    pub(super) async fn end_if_left_behind(&self, turn: Turn) -> Result<bool, SaveError> {
        let agent = self.agent_row().await?;
        if !self.core.is_leaving() || agent.is_none_or(|agent| self.core.needs_no_home(&agent)) {
            return Err(SaveError::Closing);
        }
        self.end_unstarted(turn, Verdict::node_stopped()).await?;
        Ok(true)
    }

    /// The verdict on a turn that is stopped and has no run: it was cancelled, or the server stops its agents.
    pub(super) fn stopped(&self, cancel: &CancellationToken) -> Verdict {
        if !cancel.is_cancelled() && self.core.is_leaving() {
            Verdict::node_stopped()
        } else {
            Verdict::cancelled()
        }
    }

    /// Ends a run without reading its output: it cannot be adopted, or its type is no longer configured.
    pub(super) async fn end_run(&self, turn: &Turn) {
        if let Err(error) = self.core.outside.runs.end(self.agent, turn.run).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(agent = %self.agent, error, "cannot terminate the processes of a run");
        }
    }
}
