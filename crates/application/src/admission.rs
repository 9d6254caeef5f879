//! Whether a new agent is admitted, and of which type it is.

use crate::error::Refusal;
use crate::outside::AgentType;
use crate::service::AgentService;
use crate::waiting::Waiting;

impl AgentService {
    /// The name of the agent type: the one that was asked for, or the default.
    pub(crate) fn type_name(&self, asked: Option<&str>) -> Result<String, Refusal> {
        let name = asked.or(self.core.outside.default_type.as_deref());
        Ok(name.ok_or(Refusal::TypeMissing)?.to_owned())
    }

    /// The agent type of that name, or the default one.
    pub(crate) fn agent_type(&self, asked: Option<&str>) -> Result<(String, &AgentType), Refusal> {
        let (outside, name) = (&self.core.outside, self.type_name(asked)?);
        match outside.types.get(&name) {
            Some(kind) => Ok((name, kind)),
            None => Err(outside.unknown_type(&name)),
        }
    }

    /// Counts a launch, and refuses it if the server is shutting down or too many were counted. An agent without a turn
    /// needs no more. A launch that [`admit`] then refuses has been counted all the same.
    ///
    /// [`admit`]: AgentService::admit
    pub(crate) async fn count_launch_unless_stopping(&self) -> Result<(), Refusal> {
        if self.core.closing.is_cancelled() || self.core.draining.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.core.count_launch().await
    }

    /// Admits one more agent of this node. The returned value counts it as waiting for a slot until its task does.
    pub(crate) async fn admit(&self) -> Result<Waiting, Refusal> {
        self.count_launch_unless_stopping().await?;
        let free = self.core.slots.available_permits();
        let queued_launches = self.core.limits.admission.queued_launches;
        // An agent counts as waiting until its task takes a slot, even if one is free.
        let waiting = &self.core.waiting;
        if !self.core.outside.nodes.is_shared() {
            return waiting.enter_if_fewer_than(free + queued_launches).ok_or(Refusal::TooManyQueuedLaunches);
        }
        if let Some(waiting) = waiting.enter_if_fewer_than(free) {
            return Ok(waiting);
        }
        self.check_queue_of_all_nodes().await?;
        Ok(waiting.enter())
    }

    /// Admits one more agent of another node.
    pub(crate) async fn admit_elsewhere(&self) -> Result<(), Refusal> {
        self.count_launch_unless_stopping().await?;
        self.check_queue_of_all_nodes().await
    }

    /// Launches that are saved at the same moment may exceed the limit by one for each.
    async fn check_queue_of_all_nodes(&self) -> Result<(), Refusal> {
        let waiting = self.core.outside.nodes.waiting_launches().await?;
        if waiting < self.core.limits.admission.queued_launches as u64 {
            return Ok(());
        }
        Err(Refusal::TooManyQueuedLaunches)
    }
}
