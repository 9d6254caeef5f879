//! Reads the turns of agents.

use tokenrail_domain::{AgentId, ListedTurn, Sequence, Turn, TurnNumber};
use tokenrail_ports::{ListBounds, ListPage, StoreError, TurnFilter, TurnLimit, TurnRange};

use crate::after_failover::AfterFailover;
use crate::error::Refusal;
use crate::service::AgentService;

/// Whether a list of turns contains their prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// As far as lists show a field.
    Shown,
    LeftOut,
}

impl AgentService {
    /// The agent's turns after `after`, in full, whether they wait, run or have ended, by number: at most
    /// `limits.list_agents` and about `limits.page_bytes` at once. Only an empty result means that there are no more.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn turns(&self, id: AgentId, after: TurnNumber, limit: usize) -> Result<Vec<Turn>, Refusal> {
        let limits = &self.core.limits;
        let limit =
            TurnLimit { turns: limit.min(limits.lists.list_agents), bytes: limits.reading.page_bytes };
        let turns = self.core.outside.agents.turns(id, after, limit).await?;
        if turns.is_empty() {
            // There may be no turns because there is no such agent.
            self.get(id).await?;
        }
        Ok(turns)
    }

    /// One page of the agent's turns as lists show them: at most `limits.list_agents` and about `limits.list_bytes`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn list_turns(
        &self,
        id: AgentId,
        mut range: TurnRange,
        prompts: Prompts,
    ) -> Result<ListPage<ListedTurn>, Refusal> {
        range.limit = range.limit.min(self.core.limits.lists.list_agents);
        let bounds = self.core.limits.lists.bounds();
        let bounds = match prompts {
            Prompts::Shown => bounds,
            Prompts::LeftOut => ListBounds { field_bytes: 0, ..bounds },
        };
        let page = self.core.outside.agents.list_turns(id, range, bounds).await?;
        if page.items.is_empty() {
            self.get(id).await?;
        }
        Ok(page)
    }

    /// Turns of all agents that are not deleted, without their prompts, newest first; at most `limits.list_agents` at
    /// once.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn all_turns(&self, mut filter: TurnFilter) -> Result<ListPage<ListedTurn>, Refusal> {
        filter.limit = filter.limit.min(self.core.limits.lists.list_agents);
        let bounds = ListBounds { field_bytes: 0, ..self.core.limits.lists.bounds() };
        Ok(self.core.outside.agents.all_turns(filter, bounds).await?)
    }

    /// One turn. `None` if the agent has no such turn.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn turn(&self, id: AgentId, number: TurnNumber) -> Result<Option<Turn>, Refusal> {
        let Some(before) = number.0.checked_sub(1) else { return Ok(None) };
        let turns = self.turns(id, TurnNumber(before), 1).await?;
        match turns.into_iter().find(|turn| turn.number == number) {
            // It may be saved again.
            None if AfterFailover::of(&self.core).may_be_behind() => Err(StoreError::Busy.into()),
            turn => Ok(turn),
        }
    }

    /// The turn to which an event belongs. `None` if there is no such event.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn turn_at(&self, id: AgentId, sequence: Sequence) -> Result<Option<Turn>, Refusal> {
        Ok(self.core.outside.agents.turn_at(id, sequence).await?)
    }
}
