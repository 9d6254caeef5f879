//! Commands: everything that changes the database, except what agents say.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::AgentId;

use crate::postgres::config::PostgresLimits;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// One change of the database. It may run more than once, each time in a transaction that contains nothing of the runs
/// before.
///
/// A command about one agent locks the agent's row in `heads` first, and then changes only rows of this agent. Appends
/// do the same, so the two never wait for each other in a circle.
pub(crate) trait ChangeCommand: Send + Sync + 'static {
    type Answer: Send + Sync + 'static;

    /// Whether it is done again if it is not known whether it was saved. If not, the caller gets
    /// `StoreError::OutcomeUnknown`.
    const IS_REPEATED: bool = false;

    /// How long it may take, without its commit.
    fn patience(&self, limits: &PostgresLimits) -> Duration {
        Duration::from_millis(limits.answer_timeout_ms)
    }

    /// The only agent that it is about. It is not run while something of this agent is missing that another node may
    /// still repeat after a failover.
    fn agent(&self) -> Option<AgentId> {
        None
    }

    fn run(&self, db: &Link) -> impl Future<Output = Result<Self::Answer, QueryFailure>> + Send;

    /// Runs it although it may be saved already. `first` is what the run answered of which that is not known. No matter
    /// whether it was saved: what the command does is done once, and the answer is that of the first run, or one that
    /// it could have given. The lock of the agent's row waits for the end of that run, if it is still under way.
    fn run_again(
        &self,
        db: &Link,
        first: &Self::Answer,
    ) -> impl Future<Output = Result<Self::Answer, QueryFailure>> + Send {
        let _ = first;
        self.run(db)
    }

    /// What is repeated after a failover, on the timeline on which this was done. `None` if nothing has changed, or if
    /// it does no harm that it is lost.
    fn kept(self, answer: &Self::Answer, timeline: u32) -> Option<Arc<dyn KeptChange>>
    where
        Self: Sized,
    {
        let _ = (answer, timeline);
        None
    }

    /// What a beat says about the changes that were kept before it.
    fn beat(&self, answer: &Self::Answer) -> Option<KeptBeat> {
        let _ = answer;
        None
    }
}

/// A change that a failover may lose.
#[async_trait]
pub(crate) trait KeptChange: Send + Sync {
    /// About how much memory it holds.
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// The only agent that it is about. Changes of one agent are repeated in their order.
    fn agent(&self) -> Option<AgentId> {
        None
    }

    /// Whether it adds this agent.
    fn is_new_agent(&self) -> bool {
        false
    }

    /// Whether it is a part of an import. Those do not push anything else out of the memory.
    fn is_of_an_import(&self) -> bool {
        false
    }

    /// What it says about the node itself, if it does. Beats wait until such changes were made again.
    fn of_the_node(&self) -> Option<NodeFact> {
        None
    }

    /// Makes the change again, unless it is there.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure>;
}

/// What a change says about the node itself. The newest one of each is kept however old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeFact {
    Joined,
    /// Which agent types it runs.
    Offers,
}

/// A beat that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptBeat {
    /// Its number, in the row of the node.
    pub(crate) beat: u64,
    /// The number of the newest entry that was kept when it was sent.
    pub(crate) newest: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redone {
    /// The database has it.
    There,
    /// The database had lost it.
    Again,
    /// A part of it is done. The rest builds on something that is missing: something of these agents.
    Awaits(Vec<AgentId>),
}

impl Redone {
    /// How it was found, from how many rows were changed.
    pub(crate) fn of_rows(changed: u64) -> Self {
        if changed == 0 { Self::There } else { Self::Again }
    }
}
