//! The port of all runs, for tests without any.

use std::collections::BTreeSet;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, TurnNumber};

use crate::{IRuns, RunnerError};

/// A data folder without runs.
#[derive(Debug)]
pub struct PretendRuns;

#[async_trait]
impl IRuns for PretendRuns {
    async fn sweep(&self, _keep: &BTreeSet<(AgentId, TurnNumber)>) -> Result<u32, RunnerError> {
        Ok(0)
    }

    async fn end(&self, _agent: AgentId, _run: TurnNumber) -> Result<(), RunnerError> {
        Ok(())
    }

    async fn forget(&self, _agent: AgentId) -> Result<(), RunnerError> {
        Ok(())
    }

    async fn has_room(&self) -> bool {
        true
    }
}
