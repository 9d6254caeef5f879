//! The turns of an agent whose node is lost. This node has taken the agent over to end them.

use tokenrail_domain::{Turn, TurnState};

use super::AgentTask;
use crate::core::SaveError;
use crate::planted::{Bug, is_planted};
use crate::stats::Counters;
use crate::verdict::Verdict;

/// How this node came to write the agent's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acquired {
    AsUsual,
    /// It has taken the agent over. If the agent is at home here, another node had taken it over before, and was lost
    /// before it had ended the turn that runs: what that turn does is not saved any more.
    ByTakeover,
}

impl AgentTask {
    /// Ends an open turn. What its run printed and was not saved is lost, and nobody knows whether its prompt was
    /// followed. So a turn that waits ends too: its folder is at the lost node.
    ///
    /// If any node can run the agent's turns, a turn that waits does not end: it runs at the node that takes it. That
    /// it waits is certain, because the lost node can no longer save that it begins; unless a failover may have lost
    /// that it has begun.
    ///
    /// # Errors
    /// [`SaveError::LetGo`] then.
    pub(super) async fn end_for_lost_node(&self, turn: Turn) -> Result<(), SaveError> {
        if turn.state == TurnState::Queued && turn.stop.is_none() && self.let_go().await? {
            return Err(SaveError::LetGo);
        }
        if self.is_here {
            self.end_run(&turn).await;
        }
        if is_planted(Bug::EndTwice) {
            self.end_on_behalf(turn.clone()).await?;
        }
        self.end_on_behalf(turn).await?;
        Counters::add(&self.core.counters.turns_of_lost_nodes, 1);
        Ok(())
    }

    async fn let_go(&self) -> Result<bool, SaveError> {
        let Some(agent) = self.agent_row().await? else { return Ok(false) };
        if !self.core.needs_no_home(&agent)
            || is_planted(Bug::WaitingTurnEndsWithNode)
            || self.patiently(|| self.core.outside.nodes.may_have_begun(self.agent)).await?
        {
            return Ok(false);
        }
        if self.patiently(|| self.core.outside.nodes.let_go(self.agent)).await? {
            return Ok(true);
        }
        // It may have been let go before: by a try whose outcome was unknown, or by a message. Since then, any node may
        // have taken it, also this one.
        let now = self.agent_row().await?;
        Ok(now.is_some_and(|now| now.is_unclaimed() || now.home != agent.home))
    }

    async fn end_on_behalf(&self, turn: Turn) -> Result<(), SaveError> {
        if turn.state == TurnState::Queued {
            let verdict = if turn.stop.is_some() { Verdict::cancelled() } else { Verdict::node_lost() };
            return self.end_unstarted(turn, verdict).await;
        }
        let Some(agent) = self.agent_row().await? else { return Ok(()) };
        let so_far = self.so_far(&turn).await?;
        let mut recorder = self.recorder(&agent, &turn, so_far).await?;
        self.fill_up_running(&mut recorder).await?;
        self.end(recorder, Verdict::node_lost()).await
    }
}
