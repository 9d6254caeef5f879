//! The service, and what its use cases share. Each use case is a file in `use_cases`.

use std::sync::Arc;

use tokenrail_domain::{Agent, Copied, Timestamp};
use tokenrail_ports::StoreError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::agent_task::AgentTask;
use crate::compactor::compact;
use crate::core::Core;
use crate::error::Refusal;
use crate::lifecycle::LifecycleReader;
use crate::limits::Limits;
use crate::lookout::look_out;
use crate::outside::{AgentType, Outside};
use crate::planted::{self, Bug, is_planted};
use crate::stats::{Counters, Stats};
use crate::waiting::Waiting;

/// The use cases. Cheap to clone; all clones are one service.
#[derive(Clone)]
pub struct AgentService {
    pub(crate) core: Arc<Core>,
}

impl AgentService {
    /// Creates the service. `runtime` runs the agents' tasks. Call [`AgentService::recover`] before the first client
    /// connects.
    pub fn new(outside: Outside, limits: Limits, runtime: Handle) -> Self {
        let core = Arc::new(Core::new(outside, &limits, runtime));
        core.tracker.spawn_on(compact(Arc::clone(&core)), &core.runtime);
        core.tracker.spawn_on(look_out(Arc::clone(&core)), &core.runtime);
        Self { core }
    }

    /// The lifecycle events of all agents from now on.
    pub fn lifecycle_events(&self) -> LifecycleReader {
        self.core.lifecycle.subscribe()
    }

    /// Whether the store can be read and written.
    ///
    /// # Errors
    /// [`Refusal::Store`], [`Refusal::ShuttingDown`].
    pub async fn check(&self) -> Result<(), Refusal> {
        if self.core.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        Ok(self.core.outside.agents.check().await?)
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        Stats {
            events_saved: Counters::read(&counters.events_saved),
            batches_saved: Counters::read(&counters.batches_saved),
            write_retries: Counters::read(&counters.write_retries),
            turns_started: Counters::read(&counters.turns_started),
            turns_ended: Counters::read(&counters.turns_ended),
            invariant_violations: Counters::read(&counters.invariant_violations),
            active_agents: self.core.active_agents() as u64,
            followers: self.core.tails.followers() as u64,
            tail_bytes: self.core.tails.bytes() as u64,
            tasks: self.core.runtime.metrics().num_alive_tasks() as u64,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// Cancelled when the server shuts down. Streams end then.
    pub fn closing(&self) -> CancellationToken {
        self.core.closing.clone()
    }

    /// Runs a command to its end even if its caller is gone meanwhile, so that no command is left half done.
    pub(crate) async fn undisturbed<T: Send + 'static>(
        &self,
        command: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        match self.core.tracker.spawn_on(command, &self.core.runtime).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Refusal::ShuttingDown),
            },
        }
    }

    /// Turns a store error into a refusal. If the outcome is unknown, starts the agent's task, because the turn may be
    /// saved.
    pub(crate) fn refused(&self, agent: &Agent, error: StoreError) -> Refusal {
        if let StoreError::OutcomeUnknown(_) = error {
            self.ensure_known_runs(agent);
        }
        Refusal::Store(error)
    }

    /// Makes sure that a task runs an agent whose command is repeated or may have been saved. The first attempt may
    /// have been answered with an unknown outcome. Then no task runs the agent yet.
    pub(crate) fn ensure_known_runs(&self, agent: &Agent) {
        if planted::unless(Bug::KnownIsNotRun) {
            self.ensure_task(agent);
        }
    }

    /// Makes sure that a task runs the agent's open turns.
    pub(crate) fn ensure_task(&self, agent: &Agent) {
        let tail = self.core.tails.of(agent.id);
        if let Some(control) = self.core.poke_or_register(agent.id, &tail) {
            let core = Arc::clone(&self.core);
            let cancel_on_disconnect = agent.cancel_on_disconnect || is_planted(Bug::DisconnectCancels);
            let replay = match agent.copy {
                Some(Copied::Replay(replay)) => Some(replay),
                Some(Copied::File) | None => None,
            };
            let task = AgentTask { core, agent: agent.id, control, tail, cancel_on_disconnect, replay };
            self.core.tracker.spawn_on(task.run(), &self.core.runtime);
        }
    }

    /// The agent type of that name, or the default one.
    pub(crate) fn agent_type(&self, asked: Option<&str>) -> Result<(String, &AgentType), Refusal> {
        let outside = &self.core.outside;
        let name = asked.or(outside.default_type.as_deref()).ok_or(Refusal::TypeMissing)?;
        match outside.types.get(name) {
            Some(kind) => Ok((name.to_owned(), kind)),
            None => Err(outside.unknown_type(name)),
        }
    }

    /// Admits one more agent that has no turn yet.
    pub(crate) fn admit_idle(&self) -> Result<(), Refusal> {
        if self.core.closing.is_cancelled() || self.core.draining.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.core.count_launch()
    }

    /// Admits one more agent. The returned value counts it as waiting for a place until its task does.
    pub(crate) fn admit(&self) -> Result<Waiting, Refusal> {
        self.admit_idle()?;
        let free = self.core.places.available_permits();
        let waiting = self.core.waiting.enter_unless(free + self.core.limits.admission.queued_launches);
        waiting.ok_or(Refusal::TooManyQueuedLaunches)
    }
}
