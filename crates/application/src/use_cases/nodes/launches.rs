//! Takes launches that wait for a node.

use tokenrail_ports::{LaunchClaim, StoreError};

use crate::service::AgentService;
use crate::stats::Counters;

/// Agents that are taken in one go, to end their turns. Those to run are limited by the free slots.
const STOPPED: usize = 256;

impl AgentService {
    /// Takes as many of the oldest launches as there are free slots, and all that are only to be ended.
    pub(super) async fn claim_launches(&self) -> Result<(), StoreError> {
        if self.core.draining.is_cancelled() {
            return Ok(());
        }
        let types = self.core.outside.types.all().map(|(name, _)| name.clone()).collect();
        let claim = LaunchClaim { types, to_run: self.core.free_slots(), to_stop: STOPPED };
        for agent in self.core.outside.nodes.claim_launches(claim).await? {
            Counters::add(&self.core.counters.errands, 1);
            // If this fails, the errands have it: it is at home here, and its turn waits.
            if let Some(agent) = self.core.outside.agents.get(agent).await? {
                self.start_task(&agent);
            }
        }
        Ok(())
    }
}
