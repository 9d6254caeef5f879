//! A running turn whose agent type is no longer in the configuration.

use tokenrail_domain::{Agent, StopReason, Turn};
use tokenrail_ports::{ExitStatus, RunEnd};
use tokio_util::sync::CancellationToken;

use super::AgentTask;
use crate::core::SaveError;
use crate::recorder::Recorder;
use crate::verdict::{Stop, verdict};

impl AgentTask {
    /// Leaves the agent as it is. It keeps running, and its output waits in the spool until the server is started
    /// with the type again. A misspelt name in the configuration must not cost an agent's output. Only a cancel, or
    /// a shutdown that stops the agents, ends the turn.
    pub(super) async fn leave_alone(
        &self,
        recorder: Recorder,
        agent: &Agent,
        turn: &Turn,
        cancel: CancellationToken,
    ) -> Result<(), SaveError> {
        if turn.stop != Some(StopReason::Cancelled) {
            tracing::error!(
                agent = %agent.id,
                kind = agent.kind,
                turn = %turn.number,
                "the type of a running agent is no longer configured: the agent keeps running, and its \
                 output is read once the type is configured again and the server is restarted"
            );
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = self.core.draining.cancelled() => {}
                () = self.core.closing.cancelled() => return Err(SaveError::Closing),
            }
        }
        self.end_run(turn).await;
        let end = RunEnd { status: ExitStatus::Gone, ..RunEnd::default() };
        let leaves = !cancel.is_cancelled() && self.core.is_leaving();
        let told = if leaves { Stop::NodeStops } else { Stop::Cancelled };
        let stop = turn.stop.map_or(told, Stop::of);
        self.end(recorder, verdict(None, Some(stop), &end, &self.core.limits)).await
    }
}
