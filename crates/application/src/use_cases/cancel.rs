//! Cancels turns. A cancel is saved before it is carried out, so that after a crash the next start finishes it.
//!
//! The rule has more places than this one:
//!
//! * the store keeps the first reason of a stop with the turn ([`IAgentRepository::stop_turn`]);
//! * the pump of the running turn waits for the cancel, and asks the agent to stop (`Pump::stop_as_told`);
//! * `verdict` decides about the outcome: a successful result of the agent still counts;
//! * the supervisor signals the agent and ends its processes (`supervisor/supervise.rs` in the runner crate).
//!
//! `agent_task/unfollowed.rs` cancels an agent without followers by the same steps: queue lock, save, notify, dismiss.
//! It is written separately because no client waits for it: it waits for the lock without a limit, retries, and treats
//! an unknown outcome as saved.
//!
//! [`IAgentRepository::stop_turn`]: tokenrail_ports::IAgentRepository::stop_turn

use tokenrail_domain::{Agent, AgentId, StopReason, TurnNumber, TurnState};
use tokenrail_ports::StoreError;

use crate::error::Refusal;
use crate::planted::{Bug, is_planted};
use crate::service::AgentService;

/// Which turns a stop was saved for. It decides whether the task is only woken, or the running turn is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    Nothing,
    /// Only for a waiting turn: the task finds the stop when it takes the turn.
    Waiting,
    /// Perhaps for the running turn: its task is notified at once.
    Running,
}

impl AgentService {
    /// Cancels the running turn and the waiting turns. Returns when that is saved and a process that is idle between
    /// two turns has ended. The journal shows the ends of the turns. A repeated cancel, or the cancel of an agent
    /// that has ended, changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn cancel(&self, id: AgentId) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_cancel(id).await }).await
    }

    /// Cancels one waiting or running turn. The agent's other turns continue. A waiting turn ends after the turns
    /// before it. A turn that has ended or does not exist stays as it is.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn cancel_turn(&self, id: AgentId, turn: TurnNumber) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_cancel_turn(id, turn).await }).await
    }

    /// Withdraws a turn that waits: it ends as cancelled, without having run, after the turns before it. A repeated
    /// call changes nothing.
    ///
    /// # Errors
    /// [`Refusal::TurnStarted`] if the turn has begun or ended: nothing is cancelled then. [`Refusal::TurnUnknown`],
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn withdraw_turn(&self, id: AgentId, turn: TurnNumber) -> Result<(), Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_withdraw_turn(id, turn).await }).await
    }

    /// Like [`AgentService::cancel_turn`], but does not wait: for a caller that is gone and cannot retry.
    pub fn cancel_turn_in_background(&self, id: AgentId, turn: TurnNumber) {
        let service = self.clone();
        let cancel = async move { service.cancel_turn_patiently(id, turn).await };
        self.core.tracker.spawn_on(cancel, &self.core.runtime);
    }

    /// Retries while the store fails, also if it is unknown whether the cancel was saved, because then the task of
    /// the turn was not notified.
    async fn cancel_turn_patiently(&self, id: AgentId, turn: TurnNumber) {
        let mut pause = self.core.limits.saving.retry_pause;
        while let Err(refusal) = self.do_cancel_turn(id, turn).await {
            let again = matches!(&refusal, Refusal::Store(error) if error.is_transient());
            tracing::warn!(
                agent = %id, again, error = &refusal as &dyn std::error::Error,
                "cannot cancel an agent after its client disconnected; the agent keeps running"
            );
            match self.core.pause(pause).await {
                Some(longer) if again => pause = longer,
                _ => return,
            }
        }
    }

    async fn do_cancel_turn(&self, id: AgentId, number: TurnNumber) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            let open = agents.open_turns(id).await?;
            let Some(turn) = open.iter().find(|turn| turn.number == number) else {
                return Ok(Noted::Nothing);
            };
            agents.stop_turn(id, number, StopReason::Cancelled).await?;
            Ok(if turn.state == TurnState::Running { Noted::Running } else { Noted::Waiting })
        };
        self.with_queue(&agent, save).await?;
        Ok(())
    }

    async fn do_withdraw_turn(&self, id: AgentId, number: TurnNumber) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            let state = async || {
                let open = agents.open_turns(id).await?;
                Ok::<_, StoreError>(open.iter().find(|turn| turn.number == number).map(|turn| turn.state))
            };
            let waits = |state| state == Some(TurnState::Queued) || is_planted(Bug::WithdrawsWhatRuns);
            if !waits(state().await?) {
                return Ok(Noted::Nothing);
            }
            agents.stop_turn(id, number, StopReason::Cancelled).await?;
            // An agent without a task has no lock that keeps its turns in the queue, and its task may have begun
            // meanwhile.
            let has_begun = state().await? == Some(TurnState::Running);
            Ok(if has_begun { Noted::Running } else { Noted::Waiting })
        };
        if self.with_queue(&agent, save).await? == Noted::Nothing {
            return Err(match self.turn(id, number).await? {
                Some(_) => Refusal::TurnStarted(number),
                None => Refusal::TurnUnknown(number),
            });
        }
        // The turn before it still runs. Nothing else announces that the queue has become shorter.
        self.core.tell_status(id, agent.status, self.core.now());
        Ok(())
    }

    async fn do_cancel(&self, id: AgentId) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            let noted = agents.cancel(id, self.core.now()).await?;
            // The task may not know of a cancel that is saved already: the outcome of the first attempt may have been
            // unknown.
            let tell = 0 < noted || self.core.control(id).is_some();
            Ok(if tell { Noted::Running } else { Noted::Nothing })
        };
        self.with_queue(&agent, save).await?;
        // A cancelled agent leaves no process, also between two turns.
        self.dismiss(&agent).await;
        Ok(())
    }

    /// Saves a stop, and then notifies the agent's task. No turn leaves the queue meanwhile, so each turn is found
    /// either waiting or running. Returns what was saved.
    pub(super) async fn with_queue(
        &self,
        agent: &Agent,
        save: impl AsyncFnOnce() -> Result<Noted, StoreError>,
    ) -> Result<Noted, Refusal> {
        let control = self.core.control(agent.id);
        let _queue = match &control {
            Some(control) => Some(self.core.queue(control).await?),
            None => None,
        };
        let noted = save().await?;
        if noted != Noted::Nothing {
            self.ensure_task(agent);
        }
        if noted == Noted::Running
            && let Some(control) = self.core.control(agent.id)
        {
            control.cancel();
        }
        Ok(noted)
    }

    /// Ends a process that is idle until the agent's next turn.
    pub(super) async fn dismiss(&self, agent: &Agent) {
        if let Some(kind) = self.core.outside.types.get(&agent.kind) {
            kind.runner.dismiss(agent.id).await;
        }
    }
}
