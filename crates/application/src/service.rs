//! [`AgentService`]: what the other crates see of the application.
//!
//! Its use cases are in `use_cases`, one file each. `admission` and `tasks` have two steps that several use cases
//! share: admitting a new agent, and making sure that a task runs it. The folders of an agent that was not created are
//! removed in `use_cases/delete.rs` (`remove_folders`). The state behind the service is `core`.

use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{Agent, Timestamp};
use tokenrail_ports::{ICredentials, StoreError};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::compactor::compact;
use crate::core::Core;
use crate::error::Refusal;
use crate::lifecycle::LifecycleReader;
use crate::limits::Limits;
use crate::outside::Outside;
use crate::stats::{Counters, NodeStats, Stats};

/// The use cases. Cheap to clone; all clones are one service.
#[derive(Clone)]
pub struct AgentService {
    pub(crate) core: Arc<Core>,
}

/// A server that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Whether hints of other nodes arrive. If not, the store is asked more often. `None` if it cannot be shared.
    pub hints_arrive: Option<bool>,
}

impl AgentService {
    /// Creates the service. `runtime` runs the agents' tasks. Call [`AgentService::recover`] before the first client
    /// connects.
    pub fn new(outside: Outside, limits: Limits, runtime: Handle) -> Self {
        Self::counting(outside, &limits, runtime, Arc::default())
    }

    /// Creates the service that takes the place of this one in the same process. It goes on with the same counters, so
    /// the metrics of a node that was fenced include the writes that were refused.
    #[must_use]
    pub fn successor(&self, outside: Outside, limits: Limits, runtime: Handle) -> Self {
        Self::counting(outside, &limits, runtime, Arc::clone(&self.core.counters))
    }

    fn counting(outside: Outside, limits: &Limits, runtime: Handle, counters: Arc<Counters>) -> Self {
        let core = Arc::new(Core::new(outside, limits, runtime, counters));
        core.tracker.spawn_on(compact(Arc::clone(&core)), &core.runtime);
        Self { core }
    }

    /// The lifecycle events of all agents from now on.
    pub fn lifecycle_events(&self) -> LifecycleReader {
        self.core.lifecycle.subscribe()
    }

    /// Whether the store can be read and written, there is space for another run, and this server may start what
    /// clients launch.
    ///
    /// # Errors
    /// [`Refusal::Store`], [`Refusal::DataDiskFull`], [`Refusal::OutOfTouch`], [`Refusal::ShuttingDown`].
    pub async fn check(&self) -> Result<Readiness, Refusal> {
        if self.core.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.core.outside.agents.check().await?;
        if !self.core.outside.runs.has_room().await {
            return Err(Refusal::DataDiskFull);
        }
        if self.core.membership.is_fenced() || !self.core.is_in_touch() {
            return Err(Refusal::OutOfTouch);
        }
        let outside = &self.core.outside;
        let hints_arrive = outside.nodes.is_shared().then(|| outside.bus.is_working());
        Ok(Readiness { hints_arrive })
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
            nodes: self.node_stats(),
        }
    }

    fn node_stats(&self) -> NodeStats {
        let counters = &self.core.counters;
        NodeStats {
            by_state: self.core.membership.by_state(),
            beat_age: self.core.membership.since_beat().unwrap_or_default(),
            turns_of_lost_nodes: Counters::read(&counters.turns_of_lost_nodes),
            events_gathered: Counters::read(&counters.events_gathered),
            poll_found: Counters::read(&counters.poll_found),
            errands: Counters::read(&counters.errands),
            letters: Counters::read(&counters.letters),
            fenced_writes: Counters::read(&counters.fenced_writes),
            gathers: Counters::read(&counters.gathers),
            gather_time: Duration::from_micros(Counters::read(&counters.gather_us)),
            store: self.core.outside.nodes.figures(),
            bus: self.core.outside.bus.figures(),
            failovers: self.core.outside.nodes.failovers(),
        }
    }

    /// The credentials that all nodes accept. `None` if the store cannot be shared.
    pub fn shared_credentials(&self) -> Option<Arc<dyn ICredentials>> {
        self.core.outside.credentials.clone()
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
