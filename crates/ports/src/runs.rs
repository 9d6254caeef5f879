//! The runs that are left in a data folder.

use std::collections::BTreeSet;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, TurnNumber};

use crate::RunnerError;

/// All runs of a data folder, whichever runner started them. No runner is needed: the configuration may no longer
/// contain the type of an agent whose runs are still there.
///
/// Promise: after an end or a removal, no process of the run is left, and [`IAgentRunner::adopt`] finds nothing.
///
/// [`IAgentRunner::adopt`]: crate::IAgentRunner::adopt
#[async_trait]
pub trait IRuns: Send + Sync {
    /// Ends and removes all runs except those in `keep` (agents and numbers of [runs](tokenrail_domain::Turn::run)),
    /// which will be adopted. Returns how many were removed. Must be called before anything is started or adopted.
    async fn sweep(&self, keep: &BTreeSet<(AgentId, TurnNumber)>) -> Result<u32, RunnerError>;

    /// Ends a run that cannot be adopted, because its agent type is unknown. Its output is kept until the agent is
    /// forgotten. Does nothing if there is no such run.
    async fn end(&self, agent: AgentId, run: TurnNumber) -> Result<(), RunnerError>;

    /// Ends and removes all runs of an agent, and removes the output of its ended runs.
    async fn forget(&self, agent: AgentId) -> Result<(), RunnerError>;

    /// Whether the disk has space for the files of one more run. True if that is not known.
    async fn has_room(&self) -> bool;
}
