//! [`AgentService`]: what the other crates see of the application.
//!
//! Its use cases are in `use_cases`, one file each. `admission` and `tasks` have two steps that several use cases
//! share: admitting a new agent, and making sure that a task runs it. The folders of an agent that was not created are
//! removed in `use_cases/delete.rs` (`remove_folders`). The state behind the service is `core`.

use std::sync::Arc;

use tokenrail_domain::{Agent, Timestamp};
use tokenrail_ports::StoreError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::compactor::compact;
use crate::core::Core;
use crate::error::Refusal;
use crate::lifecycle::LifecycleReader;
use crate::limits::Limits;
use crate::missed_announcements::find_missed_announcements;
use crate::outside::Outside;
use crate::stats::{Counters, Stats};

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
        core.tracker.spawn_on(find_missed_announcements(Arc::clone(&core)), &core.runtime);
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
    pub(crate) fn refused_or_unknown(&self, agent: &Agent, error: StoreError) -> Refusal {
        if let StoreError::OutcomeUnknown(_) = error {
            self.ensure_task_if_saved(agent);
        }
        Refusal::Store(error)
    }
}
