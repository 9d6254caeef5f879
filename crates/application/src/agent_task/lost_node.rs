//! The turns of an agent whose node is lost. This node has taken the agent over to end them.

use tokenrail_domain::{Turn, TurnState};

use super::AgentTask;
use crate::after_failover::AfterFailover;
use crate::core::SaveError;
use crate::planted::{Bug, is_planted};
use crate::recorder::Recorder;
use crate::stats::Counters;
use crate::verdict::Verdict;

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

    /// After a failover, a server that has just started waits until the other nodes have said how far they had shown
    /// journals whose ends are lost: its previous process may have saved them, and this one does not know it.
    pub(super) async fn until_others_have_told(&self) -> Result<(), SaveError> {
        while AfterFailover::of(&self.core).is_news_to_this_server()
            && self.patiently(|| self.core.outside.nodes.is_catching_up()).await?
        {
            let pause = tokio::time::sleep(AfterFailover::of(&self.core).pause);
            self.core.closing.run_until_cancelled(pause).await.ok_or(SaveError::Closing)?;
        }
        Ok(())
    }

    async fn let_go(&self) -> Result<bool, SaveError> {
        let Some(agent) = self.agent_row().await? else { return Ok(false) };
        if !self.core.needs_no_home(&agent)
            || self.patiently(|| self.core.outside.nodes.may_have_begun(self.agent)).await?
        {
            return Ok(false);
        }
        self.patiently(|| self.core.outside.nodes.let_go(self.agent)).await
    }

    /// Records that events are lost that were shown: a failover of the database has lost them, and their node cannot
    /// repeat them. Nothing else may have their numbers.
    pub(super) async fn fill_up(&self, recorder: &mut Recorder) -> Result<(), SaveError> {
        let seen = self.patiently(|| self.core.outside.nodes.seen(self.agent)).await?;
        let (first, now) = (recorder.next_sequence(), self.core.now());
        while recorder.next_sequence() <= seen {
            recorder.notice("events_lost", "{}", now);
        }
        if first <= seen {
            tracing::error!(agent = %self.agent, %first, last = %seen, "a failover of the database has lost events");
        }
        Ok(())
    }

    async fn end_on_behalf(&self, turn: Turn) -> Result<(), SaveError> {
        if turn.state == TurnState::Queued {
            let verdict = if turn.stop.is_some() { Verdict::cancelled() } else { Verdict::node_lost() };
            return self.end_unstarted(turn, verdict).await;
        }
        let Some(agent) = self.agent_row().await? else { return Ok(()) };
        let so_far = self.so_far(&turn).await?;
        let mut recorder = self.recorder(&agent, &turn, so_far).await?;
        self.fill_up(&mut recorder).await?;
        self.end(recorder, Verdict::node_lost()).await
    }
}
