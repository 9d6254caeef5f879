//! Spawns the tasks of agents, and wakes those that run. A use case that has saved a turn or a stop calls this. The
//! next step of a new task is `AgentTask::run`, in `agent_task`.

use std::sync::Arc;

use tokenrail_domain::{Agent, Copied};
use tokenrail_ports::Hint;

use crate::agent_task::{Acquired, AgentTask};
use crate::planted::{self, Bug, is_planted};
use crate::service::AgentService;

impl AgentService {
    /// Makes sure that a task runs this agent if it has open turns. It may have no task: its launch or message may have
    /// been saved although the client was told that the outcome is unknown. The task ends if nothing was saved.
    pub(crate) fn ensure_task_if_saved(&self, agent: &Agent) {
        if planted::correctly(Bug::KnownIsNotRun) {
            self.ensure_task(agent);
        }
    }

    /// Makes sure that a task runs the agent's open turns: here, or at the node that has the agent. Returns whether the
    /// agent had a task here before.
    pub(crate) fn ensure_task(&self, agent: &Agent) -> bool {
        match self.core.elsewhere(agent) {
            None => self.start_task(agent),
            Some(home) => {
                if let Some(tail) = self.core.tails.get(agent.id) {
                    tail.set_active(true);
                }
                self.core.send_hint(Hint::Errand(home));
                if agent.is_unclaimed() {
                    // This node may take it too.
                    self.core.work_left_here.notify_one();
                }
                false
            }
        }
    }

    /// Makes sure that a task of this node runs, or ends, the agent's open turns. Returns whether the agent had one.
    pub(crate) fn start_task(&self, agent: &Agent) -> bool {
        self.start_task_of(agent, Acquired::AsUsual)
    }

    /// The same for an agent that this node has just taken over.
    pub(crate) fn start_task_of_taken(&self, agent: &Agent) {
        self.start_task_of(agent, Acquired::ByTakeover);
    }

    fn start_task_of(&self, agent: &Agent, acquired: Acquired) -> bool {
        let tail = self.core.tails.of(agent.id);
        let new = self.core.poke_or_register(agent.id, &tail);
        let had_task = new.is_none();
        if let Some(handle) = new {
            let core = Arc::clone(&self.core);
            // On a shared store, followers at other nodes count too: see `nodes/watching.rs`.
            let cancels = agent.cancel_on_disconnect && !core.outside.nodes.is_shared();
            let cancel_on_disconnect = cancels || is_planted(Bug::DisconnectCancels);
            let is_here = core.is_here(agent);
            let replay = match agent.copy {
                Some(Copied::Replay(replay)) => Some(replay),
                Some(Copied::File) | None => None,
            };
            let agent = agent.id;
            let task =
                AgentTask { core, agent, handle, tail, cancel_on_disconnect, replay, is_here, acquired };
            self.core.tracker.spawn_on(task.run(), &self.core.runtime);
        }
        had_task
    }
}
