//! The state of a turn that its result needs: number, start, messages, and the agent's own result.

use tokenrail_domain::{AgentError, Timestamp, TurnClose, TurnNumber, TurnOutcome, TurnResult};

/// The turn that is being recorded.
#[derive(Debug, Clone)]
pub(super) struct RecordedTurn {
    pub(super) number: TurnNumber,
    pub(super) started_at: Timestamp,
    /// How many complete messages it has.
    pub(super) message_count: u32,
    /// The agent's own result. `None` until the agent reports one.
    pub(super) agent_result: Option<TurnClose>,
}

impl RecordedTurn {
    pub(super) fn new(number: TurnNumber, started_at: Timestamp, message_count: u32) -> Self {
        Self { number, started_at, message_count, agent_result: None }
    }

    /// The result that ends the turn. Consumes the agent's own result.
    pub(super) fn result(
        &mut self,
        outcome: TurnOutcome,
        error: Option<AgentError>,
        now: Timestamp,
    ) -> TurnResult {
        let agent_result = self.agent_result.take().unwrap_or_default();
        TurnResult {
            outcome,
            text: agent_result.text,
            duration_ms: now.ms_since(self.started_at),
            num_turns: agent_result.num_turns,
            cost_usd: agent_result.cost_usd,
            usage: agent_result.usage,
            message_count: self.message_count,
            error,
            origin: agent_result.origin,
        }
    }
}
