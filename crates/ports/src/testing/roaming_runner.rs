//! A runner whose agents need no home.

use std::sync::Arc;

use async_trait::async_trait;

use super::ScriptedRunner;
use crate::{Adoption, IAgentRun, IAgentRunner, Probe, RunnerError, TurnOrder};

/// Plays the scripts of another runner, for agents that keep nothing on the disk of their node.
#[derive(Debug)]
pub struct RoamingRunner(pub Arc<ScriptedRunner>);

#[async_trait]
impl IAgentRunner for RoamingRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        self.0.start(order).await
    }

    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        self.0.adopt(order, committed).await
    }

    async fn probe(&self) -> Probe {
        self.0.probe().await
    }

    fn needs_home(&self) -> bool {
        false
    }
}
