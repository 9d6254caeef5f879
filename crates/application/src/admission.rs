//! Whether a new agent is admitted, and of which type it is.

use crate::error::Refusal;
use crate::outside::AgentType;
use crate::service::AgentService;
use crate::waiting::Waiting;

impl AgentService {
    /// The agent type of that name, or the default one.
    pub(crate) fn agent_type(&self, asked: Option<&str>) -> Result<(String, &AgentType), Refusal> {
        let outside = &self.core.outside;
        let name = asked.or(outside.default_type.as_deref()).ok_or(Refusal::TypeMissing)?;
        match outside.types.get(name) {
            Some(kind) => Ok((name.to_owned(), kind)),
            None => Err(outside.unknown_type(name)),
        }
    }

    /// Counts a launch, and admits one more agent. An agent without a turn needs no more. A launch that [`admit`] then
    /// refuses has been counted all the same.
    ///
    /// [`admit`]: AgentService::admit
    pub(crate) fn count_and_admit(&self) -> Result<(), Refusal> {
        if self.core.closing.is_cancelled() || self.core.draining.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.core.count_launch()
    }

    /// Admits one more agent. The returned value counts it as waiting for a place until its task does.
    pub(crate) fn admit(&self) -> Result<Waiting, Refusal> {
        self.count_and_admit()?;
        let free = self.core.places.available_permits();
        // An agent counts as waiting until its task takes a place, even if one is free.
        let waiting =
            self.core.waiting.enter_if_fewer_than(free + self.core.limits.admission.queued_launches);
        waiting.ok_or(Refusal::TooManyQueuedLaunches)
    }
}
