//! Cancels turns. A cancel is saved before it is carried out, so that after a crash the next start finishes it.
//!
//! The steps, in order. The files of steps 4 to 7, and `process/idle_processes.rs`, are in the runner crate:
//!
//! 1. `rest/agents.rs` of the presentation crate (`cancel`) calls this file (`do_cancel`; for one turn
//!    `do_cancel_turn`). If the agent has a task, it takes the task's queue lock, so that each turn is either waiting
//!    or running (`save_and_signal_stop`). It saves with each turn why it is stopped, unless a reason is saved already
//!    ([`IAgentRepository::cancel`], [`IAgentRepository::stop_turn`]). The client gets 202 after this step and, if all
//!    turns are cancelled, step 9.
//!    * Who is woken: the agent's task (`ensure_task` in `tasks.rs`) and the running turn (`TaskHandle::cancel` in
//!      `task_handle.rs`). For one turn, `stop_turn` does the latter, after it has read the turn's state again.
//!    * If another node runs the agent, `ensure_task` sends that node a hint. `nodes/errands.rs` (`carry_out`) finds
//!      the saved stop there, with or without the hint, and signals the turn or starts the task. Step 9 is a letter
//!      then (`dismiss_elsewhere` in `nodes/letters.rs`).
//! 2. A queued turn keeps its place in the queue. When it reaches the head of the queue, `agent_task.rs` finds the
//!    stop, and saves the turn's message and the result `cancelled` without starting the agent (`end_unstarted` in
//!    `agent_task/ends.rs`).
//! 3. A running turn: `pump/waits.rs` (`stop_signal`) sees that the turn's token is cancelled, the loop in `pump.rs`
//!    (`carry`) receives its signal, and `pump/stop.rs` asks the run to stop (`stop_as_told`, `ask_to_stop`). It asks
//!    again if that fails. Five kinds of turns have no pump, or no process:
//!    * a turn that is saved, but whose agent has not started: `agent_task.rs` does not start it (`start_run`);
//!    * a copy: `agent_task/replay.rs` (`wait_for`) stops playing;
//!    * an agent whose type is no longer configured: `agent_task/unknown_type.rs` ends its run;
//!    * a proxied agent: `proxy.rs` of the runner crate closes the connection;
//!    * a recorded agent: `replay.rs` of the runner crate plays no more lines.
//! 4. `process/run.rs` writes the command into the FIFO `control` (`cancel`; `process/run/tell.rs`).
//! 5. `supervisor/supervise.rs` receives it (`wait`), and signals the agent (`stop_politely`): SIGINT if configured,
//!    then SIGTERM. If the agent speaks a protocol, its `converse` process gets the signals: `converse/exchange.rs`
//!    (`cancel`) settles the open requests and sends the protocol's own cancel to the program. SIGTERM also goes on to
//!    the program (`converse/program.rs`, `signal`). The program then ends its turn. After a cancel it does not become
//!    idle: its input is closed, and it exits by itself (`exchange.rs`: `idle_or_end`, or `end` if the protocol says
//!    that the conversation is over). Step 6 ends one that does not. `converse/force.rs` acts only on a program that
//!    was idle (step 9) or has closed its output.
//! 6. The supervisor sends SIGTERM to what an ended agent left behind, then stops and kills all descendants until none
//!    is left or the time is up (`supervisor/sweep.rs`; `run_folder/proc.rs` finds them). It copies the rest of the
//!    output (`finish_output`), and records the end in `exit.json` (`record_exit`), with the number of processes that
//!    are left.
//! 7. If the supervisor is stuck, `process/run.rs` kills it with its descendants (`wait_or_force_end`, at the time
//!    `force_at`). If the supervisor is dead, it kills what is left of the run (`lost`).
//! 8. In the runner crate, `process/run.rs` (`next`, `ended`) returns the rest of the spool (`process/run/spool.rs`),
//!    and then the end. The loop in `pump.rs` of this crate calls `pump/finish.rs` (`finish`). `verdict.rs` decides
//!    about the outcome: a successful result of the agent still counts. The result is an event like any other
//!    (`recorder/turn_end.rs`). After it is saved, `pump.rs` (`after_save`) announces it (`announce.rs`), and the run
//!    folder is removed (`leave`).
//! 9. A process that is idle between two turns never reaches the pump: `dismiss`, at the end of `do_cancel`, lets
//!    `process/idle_processes.rs` stop it by steps 4 to 7 and remove its run folder.
//!
//! `agent_task/unfollowed.rs` cancels an agent without followers by the same steps: queue lock, save, notify, dismiss.
//! It is written separately because no client waits for it: it waits for the lock without a limit, retries, and treats
//! an unknown outcome as saved. On a shared store, `nodes/watching.rs` does it (`cancel_unfollowed_agent`).
//!
//! [`IAgentRepository::cancel`]: tokenrail_ports::IAgentRepository::cancel
//! [`IAgentRepository::stop_turn`]: tokenrail_ports::IAgentRepository::stop_turn

use tokenrail_domain::{Agent, AgentId, StopReason, TurnNumber, TurnState};
use tokenrail_ports::StoreError;
use tokio::time::Instant;

use crate::error::Refusal;
use crate::planted::{Bug, is_planted};
use crate::service::AgentService;

/// Who must learn of a stop that was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Nobody: no stop was saved.
    Nobody,
    /// The agent's task. It finds the stop when it takes the turn.
    Task,
    /// The task, and the run if there is one.
    TaskAndRun,
}

impl AgentService {
    /// Cancels the running turn and the waiting turns. Returns when that is saved and a process that is idle between
    /// two turns has ended. If the turn has just ended, the pump ends its process, perhaps after this returns. The
    /// journal shows the ends of the turns. A repeated cancel, or the cancel of an agent that has ended, changes
    /// nothing.
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
    /// call changes nothing. Once the turn has ended, it is refused.
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
        let cancel = async move { service.cancel_turn_of_gone_client(id, turn).await };
        self.core.tracker.spawn_on(cancel, &self.core.runtime);
    }

    async fn cancel_turn_of_gone_client(&self, id: AgentId, turn: TurnNumber) {
        let failed = "cannot cancel an agent after its client disconnected";
        self.until_cancelled(id, failed, || self.do_cancel_turn(id, turn)).await;
    }

    /// Retries a cancel while the store fails, because no client will. Retries also if it is unknown whether the cancel
    /// was saved, because then the task of the turn was not notified. `failed` is logged.
    async fn until_cancelled<F>(&self, id: AgentId, failed: &'static str, cancel: impl Fn() -> F)
    where
        F: Future<Output = Result<(), Refusal>>,
    {
        let mut pause = self.core.limits.saving.retry_pause;
        while let Err(refusal) = cancel().await {
            let again = matches!(&refusal, Refusal::Store(error) if error.is_transient());
            let goes_on = again && !self.core.closing.is_cancelled();
            let next = if goes_on { "retrying" } else { "the agent keeps running" };
            tracing::warn!(agent = %id, error = &refusal as &dyn std::error::Error, "{failed}; {next}");
            match self.core.pause(pause).await {
                Some(longer) if again => pause = longer,
                _ => return,
            }
        }
    }

    async fn do_cancel_turn(&self, id: AgentId, number: TurnNumber) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        self.stop_turn(&agent, number, |_| true).await?;
        Ok(())
    }

    async fn do_withdraw_turn(&self, id: AgentId, number: TurnNumber) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let waits = |state| state == TurnState::Queued || is_planted(Bug::WithdrawsWhatRuns);
        if self.stop_turn(&agent, number, waits).await? == Wake::Nobody {
            return Err(match self.turn(id, number).await? {
                Some(_) => Refusal::TurnStarted(number),
                None => Refusal::TurnUnknown(number),
            });
        }
        // The turn before it still runs. Nothing else announces that the queue has become shorter.
        self.core.tell_status(id, agent.status, self.core.now());
        Ok(())
    }

    /// Stops one open turn whose state `may_stop` accepts. Returns [`Wake::Nobody`] if there is no such turn.
    async fn stop_turn(
        &self,
        agent: &Agent,
        number: TurnNumber,
        may_stop: impl Fn(TurnState) -> bool,
    ) -> Result<Wake, Refusal> {
        let agents = &self.core.outside.agents;
        let state = async || {
            let open = agents.open_turns(agent.id).await?;
            Ok::<_, StoreError>(open.iter().find(|turn| turn.number == number).map(|turn| turn.state))
        };
        let save = async || {
            if !state().await?.is_some_and(&may_stop) {
                return Ok(Wake::Nobody);
            }
            agents.stop_turn(agent.id.turn(number), StopReason::Cancelled).await?;
            Ok(Wake::Task)
        };
        let deadline = self.core.command_deadline();
        let wake = self.save_and_signal_stop(agent, deadline, save).await?;
        // A running turn gets its signal here. Its state is read again under the lock of the queue, because a task that
        // has just begun may have read the turn before the stop was saved. It holds the lock until the turn is saved as
        // running.
        if wake == Wake::Task
            && let Some(handle) = self.core.task_handle(agent.id)
        {
            let Ok(_queue) = self.core.lock_queue(&handle, deadline).await else {
                // The client need not wait: the stop is saved.
                self.cancel_turn_in_background(agent.id, number);
                return Ok(wake);
            };
            let now = state().await.map_err(|error| Refusal::Store(error).after_save())?;
            if now == Some(TurnState::Running) {
                handle.cancel();
            }
        }
        Ok(wake)
    }

    async fn do_cancel(&self, id: AgentId) -> Result<(), Refusal> {
        let agent = self.get(id).await?;
        let agents = &self.core.outside.agents;
        let save = async || {
            // The next step: `cancel` in `store/ports.rs` of `sqlite/` or `postgres/`, in the persistence crate.
            let noted = agents.cancel(id, self.core.now()).await?;
            // The task may not know of a cancel that is saved already: the outcome of the first attempt may have been
            // unknown.
            let is_elsewhere = !self.core.is_here(&agent);
            let wakes = 0 < noted || is_elsewhere || self.core.task_handle(id).is_some();
            Ok(if wakes { Wake::TaskAndRun } else { Wake::Nobody })
        };
        let deadline = self.core.command_deadline();
        self.save_and_signal_stop(&agent, deadline, save).await?;
        // A cancelled agent leaves no process, also between two turns.
        self.dismiss(&agent, deadline).await.map_err(Refusal::after_save)
    }

    /// Ends the process of an agent that is idle until its next turn, at the node that has it.
    pub(super) async fn dismiss(&self, agent: &Agent, deadline: Instant) -> Result<(), Refusal> {
        match self.core.elsewhere(agent) {
            None => self.core.outside.dismiss(agent).await,
            Some(home) => self.dismiss_elsewhere(agent, home, deadline).await?,
        }
        Ok(())
    }

    /// Cancels an agent that nobody follows any more.
    pub(crate) async fn cancel_unfollowed_agent(&self, id: AgentId) {
        let failed = "cannot cancel an agent that no longer has followers";
        self.until_cancelled(id, failed, || self.do_cancel(id)).await;
    }

    /// Saves a stop, makes sure that a task carries it out, and signals the running turn if `save` returns
    /// [`Wake::TaskAndRun`]. While the agent has a task, its queue lock keeps each turn waiting or running. Returns who
    /// was woken.
    pub(super) async fn save_and_signal_stop(
        &self,
        agent: &Agent,
        deadline: Instant,
        save: impl AsyncFnOnce() -> Result<Wake, StoreError>,
    ) -> Result<Wake, Refusal> {
        let handle = self.core.task_handle(agent.id);
        let _queue = match &handle {
            Some(handle) => Some(self.core.lock_queue(handle, deadline).await?),
            None => None,
        };
        let wake = save().await?;
        if wake != Wake::Nobody {
            self.ensure_task(agent);
        }
        if wake == Wake::TaskAndRun
            && let Some(handle) = self.core.task_handle(agent.id)
        {
            handle.cancel();
        }
        Ok(wake)
    }
}
