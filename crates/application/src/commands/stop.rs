//! The use cases that end something: cancel, delete, purge. What they promise is saved before they do it, so that a
//! server that dies meanwhile leaves it to its next life.

use tokenrail_domain::{Agent, AgentId, StopReason, TurnNumber, TurnState};
use tokenrail_ports::StoreError;
#[cfg(planted_bugs)]
use tokenrail_ports::planted::{Bug, is_planted};

use crate::error::Refusal;
use crate::news::News;
use crate::service::AgentService;

impl AgentService {
    /// Cancels the turn that runs and those that wait. Returns when that is saved; their ends show in the journal. A
    /// process that waits for the agent's next turn has ended then. Cancelling again, or an agent that has ended, changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn cancel(&self, id: AgentId) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_cancel(id).await }).await
    }

    /// Cancels one turn, waiting or running; the agent's others go on. One that has ended, or is not there, stays as
    /// it is. One that waits ends when those before it have.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn cancel_turn(&self, id: AgentId, turn: TurnNumber) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_cancel_turn(id, turn).await }).await
    }

    /// As [`AgentService::cancel_turn`], without waiting: for where nobody is left who could wait, or ask again.
    pub fn cancel_turn_in_background(&self, id: AgentId, turn: TurnNumber) {
        let service = self.clone();
        let cancel = async move { service.cancel_turn_patiently(id, turn).await };
        self.core.tracker.spawn_on(cancel, &self.core.runtime);
    }

    /// Tries for as long as the store is out of order. Also where it is not known whether the cancel was saved: the
    /// task of the turn has not been told of it then.
    async fn cancel_turn_patiently(&self, id: AgentId, turn: TurnNumber) {
        let mut pause = self.core.limits.retry_pause;
        while let Err(refusal) = self.do_cancel_turn(id, turn).await {
            let again = matches!(&refusal, Refusal::Store(error) if error.is_transient());
            tracing::warn!(
                agent = %id, again, error = &refusal as &dyn std::error::Error, "an agent runs on without its client"
            );
            match self.core.pause(pause).await {
                Some(longer) if again => pause = longer,
                _ => return,
            }
        }
    }

    async fn do_cancel_turn(&self, id: AgentId, number: TurnNumber) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let control = self.core.control(id);
        let _queue = match &control {
            Some(control) => Some(self.core.queue(control).await?),
            None => None,
        };
        let agents = &self.core.outside.agents;
        let open = agents.open_turns(id).await?;
        let Some(turn) = open.iter().find(|turn| turn.number == number) else { return Ok(()) };
        agents.stop_turn(id, number, StopReason::Cancelled).await?;
        self.ensure_task(&agent);
        if turn.state == TurnState::Running
            && let Some(control) = self.core.control(id)
        {
            control.cancel();
        }
        Ok(())
    }

    async fn do_cancel(&self, id: AgentId) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        #[cfg(planted_bugs)]
        if is_planted(Bug::CancelInMemoryOnly) {
            if let Some(control) = self.core.control(id) {
                control.cancel();
            }
            return Ok(());
        }
        let agents = &self.core.outside.agents;
        // What is noted already may not have been told: the first answer was perhaps that the outcome is unknown.
        let tell = |noted| 0 < noted || self.core.control(id).is_some();
        self.with_queue(&agent, async || agents.cancel(id, self.core.now()).await.map(tell)).await?;
        // Whoever cancels an agent wants nothing of it to be left, also between two turns.
        self.dismiss(&agent).await;
        Ok(())
    }

    /// Stops an agent and takes it out of the lists; with `purge` all that there is of it is gone too: its history,
    /// what its runs have left on disk, and the folder that was made for it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn delete(&self, id: AgentId, purge: bool) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_delete(id, purge).await }).await
    }

    async fn do_delete(&self, id: AgentId, purge: bool) -> Result<(), Refusal> {
        let now = self.core.now();
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        if !self.with_queue(&agent, async || agents.delete(id, now, purge).await).await? {
            return Err(Refusal::NotFound(id));
        }
        if !self.until_stopped(id).await {
            // It is saved: the next life of the server does the rest.
            return Ok(());
        }
        self.dismiss(&agent).await;
        if purge {
            self.finish_purge(id).await?;
        }
        if let Some(tail) = self.core.tails.get(id) {
            tail.set_gone();
            tail.forget();
        }
        self.core.news.tell(News::Deleted { agent: id, at: now });
        Ok(())
    }

    /// Finishes what an earlier life of the server was about to purge.
    pub(crate) async fn purge_in_background(&self, id: AgentId) {
        if !self.until_stopped(id).await {
            return;
        }
        if let Err(error) = self.finish_purge(id).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(agent = %id, error, "an agent is not purged, and will be after the next start");
        }
    }

    /// Saves what ends turns, and tells their task. Nobody takes a turn out of the queue meanwhile, so each turn is
    /// met either waiting or running. Gives what was saved: whether there is anything to tell.
    async fn with_queue(
        &self,
        agent: &Agent,
        save: impl AsyncFnOnce() -> Result<bool, StoreError>,
    ) -> Result<bool, Refusal> {
        let control = self.core.control(agent.id);
        let _queue = match &control {
            Some(control) => Some(self.core.queue(control).await?),
            None => None,
        };
        let something = save().await?;
        if something {
            self.ensure_task(agent);
            if let Some(control) = self.core.control(agent.id) {
                control.cancel();
            }
        }
        Ok(something)
    }

    /// Ends a process that waits for the agent's next turn.
    async fn dismiss(&self, agent: &Agent) {
        if let Some(kind) = self.core.outside.types.get(&agent.kind) {
            kind.runner.dismiss(agent.id).await;
        }
    }

    /// Waits until nothing of an agent runs, but not for ever. False where the server goes down meanwhile.
    async fn until_stopped(&self, id: AgentId) -> bool {
        let Some(tail) = self.core.tails.get(id) else { return true };
        if tokio::time::timeout(self.core.limits.stop_timeout, tail.until_idle()).await.is_err() {
            tracing::warn!(agent = %id, "deleted while its processes are still being stopped");
        }
        // A task that ends because of the shutdown leaves its agent running.
        !self.core.closing.is_cancelled()
    }

    /// Removes all that there is of an agent. Its rows go last: as long as they are there, its next life knows what
    /// is still to be removed.
    async fn finish_purge(&self, id: AgentId) -> Result<(), StoreError> {
        for (name, kind) in &self.core.outside.types {
            if let Err(error) = kind.runner.forget(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, kind = name, error, "what a run has left cannot be removed");
            }
        }
        self.remove_folders(id).await;
        self.core.outside.agents.purge(id, self.core.now()).await?;
        Ok(())
    }

    /// Removes the folder that was made for an agent. Its type may be gone from the configuration: each type is asked.
    pub(crate) async fn remove_folders(&self, id: AgentId) {
        for (name, kind) in &self.core.outside.types {
            if let Err(error) = kind.workspace.remove(id).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(agent = %id, kind = name, error, "the folder of an agent cannot be removed");
            }
        }
    }
}
