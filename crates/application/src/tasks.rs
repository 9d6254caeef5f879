//! Spawns the tasks of agents. A use case that has saved a turn or a stop calls this. The next step is
//! `AgentTask::run`, in `agent_task`.

use std::sync::Arc;

use tokenrail_domain::{Agent, Copied};

use crate::agent_task::AgentTask;
use crate::planted::{self, Bug, is_planted};
use crate::service::AgentService;

impl AgentService {
    /// Makes sure that a task runs this agent. It may have none: its launch or message may have been saved although the
    /// client was told that the outcome is unknown.
    pub(crate) fn ensure_task_if_saved(&self, agent: &Agent) {
        if planted::correctly(Bug::KnownIsNotRun) {
            self.ensure_task(agent);
        }
    }

    /// Makes sure that a task runs the agent's open turns.
    pub(crate) fn ensure_task(&self, agent: &Agent) {
        let tail = self.core.tails.of(agent.id);
        if let Some(handle) = self.core.poke_or_register(agent.id, &tail) {
            let core = Arc::clone(&self.core);
            let cancel_on_disconnect = agent.cancel_on_disconnect || is_planted(Bug::DisconnectCancels);
            let replay = match agent.copy {
                Some(Copied::Replay(replay)) => Some(replay),
                Some(Copied::File) | None => None,
            };
            let task = AgentTask { core, agent: agent.id, handle, tail, cancel_on_disconnect, replay };
            self.core.tracker.spawn_on(task.run(), &self.core.runtime);
        }
    }
}
