//! What a failover of a shared database may have lost of an agent's journal. Each turn passes here.

use tokenrail_domain::Sequence;
use tokenrail_ports::TurnStep;

use super::AgentTask;
use crate::after_failover::AfterFailover;
use crate::announce::save_and_announce;
use crate::core::SaveError;
use crate::own_notices::EVENTS_LOST;
use crate::planted::{self, Bug};
use crate::recorder::Recorder;

impl AgentTask {
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

    /// Records that events are lost that were shown: a failover of the database has lost them, and their node cannot
    /// repeat them. Nothing else may have their numbers.
    pub(super) async fn fill_up(&self, recorder: &mut Recorder) -> Result<(), SaveError> {
        let seen = self.last_seen(recorder.next_sequence()).await?;
        let now = self.core.now();
        while recorder.next_sequence() <= seen {
            recorder.notice(EVENTS_LOST, "{}", now);
        }
        Ok(())
    }

    /// The same in a turn that runs. It is saved in parts, so that not all of it waits in memory.
    pub(super) async fn fill_up_running(&self, recorder: &mut Recorder) -> Result<(), SaveError> {
        let seen = self.last_seen(recorder.next_sequence()).await?;
        let now = self.core.now();
        while recorder.next_sequence() <= seen {
            recorder.notice(EVENTS_LOST, "{}", now);
            if self.core.limits.saving.pending_events <= recorder.pending_events()
                && let Some(append) = recorder.take(TurnStep::Continue)
            {
                save_and_announce(&self.core, &self.tail, append).await?;
            }
        }
        Ok(())
    }

    /// The last number that any node has shown. `next` is the one after the journal.
    async fn last_seen(&self, next: Sequence) -> Result<Sequence, SaveError> {
        let seen = self.patiently(|| self.core.outside.nodes.seen(self.agent)).await?;
        let seen = planted::instead(Bug::ShownNumbersReused, seen, || Sequence::START);
        if next <= seen {
            let agent = self.agent;
            tracing::error!(%agent, first = %next, last = %seen, "a failover of the database has lost events");
        }
        Ok(seen)
    }
}
