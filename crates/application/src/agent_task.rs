//! One task for each agent that has something to run: it takes the agent's turns one by one.
//!
//! The methods of [`AgentTask`], by file:
//!
//! | file | methods |
//! | --- | --- |
//! | this one | the loop: `run`, `run_next`; a new turn: `slot`, `run_new_turn`, `start_run` |
//! | [`next_turn`] | `first_open_turn`, `next_turn`, `next_to_start` |
//! | [`ends`] | turns without a run: `end_unstarted`, `end`, `end_if_left_behind`, `stopped`; `end_run` |
//! | [`resume`] | a turn that ran before the server was restarted: `resume`, `so_far` |
//! | [`unknown_type`] | the same, of an agent type that is no longer configured |
//! | [`replay`] | `play`: a copy of another journal instead of an agent program |
//! | [`folder`] | `make_missing_folder`: the folder of an agent that was launched at another node |
//! | [`order`] | `order`, `add_images`: what a runner is asked to do |
//! | [`past_turns`] | `past_turns`: the history that some runners send with a turn |
//! | [`unfollowed`] | `watch_followers`: cancels the agent after its last follower has left |
//! | [`lost_node`] | `end_for_lost_node`: ends the turns of an agent of a lost node |
//! | [`after_failover`] | what a failover may have lost of the journal: `until_others_have_told`, `fill_up`, `fill_up_running` |
//! | [`panicked`] | `clean_up`: ends the turn after a panic |
//! | [`refused`] | `give_up`: ends the task although the agent has open turns, and says why |

mod after_failover;
mod ends;
mod folder;
mod lost_node;
mod next_turn;
mod order;
mod panicked;
mod past_turns;
mod refused;
mod replay;
mod resume;
mod unfollowed;
mod unknown_type;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokenrail_domain::{
    Agent, AgentError, AgentId, AgentStatus, ErrorClass, EventBody, Replay, SessionId, Turn, TurnState,
};
use tokenrail_ports::{Append, IAgentRun, StoreError, TurnStep};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

pub(crate) use self::lost_node::Acquired;
use self::order::order;
pub(crate) use self::panicked::Cleaned;
use self::resume::SoFar;
use crate::announce::save_and_announce;
use crate::core::{Core, SaveError};
use crate::outside::AgentType;
use crate::planted::{self, Bug};
use crate::pump::{Pump, PumpStart};
use crate::recorder::{Recorder, RecorderStart, session_invalid};
use crate::tails::Tail;
use crate::task_handle::{TaskHandle, TurnChannels};
use crate::verdict::Verdict;

/// Runs the agent's open turns until there is none.
pub(crate) struct AgentTask {
    pub(crate) core: Arc<Core>,
    pub(crate) agent: AgentId,
    pub(crate) handle: Arc<TaskHandle>,
    pub(crate) tail: Arc<Tail>,
    /// Whether all open turns are cancelled after the last follower has left.
    pub(crate) cancel_on_disconnect: bool,
    /// The replay of another agent's journal. `None` if the task runs an agent program.
    pub(crate) replay: Option<Replay>,
    /// Whether this node has the agent's folder and runs. Otherwise its node is lost, and its turns are ended here.
    pub(crate) is_here: bool,
    pub(crate) acquired: Acquired,
}

impl AgentTask {
    /// Runs the agent's open turns until there is none. If the task panics, its turn ends as failed.
    pub(crate) async fn run(self) {
        while AssertUnwindSafe(self.run_and_watch_followers()).catch_unwind().await.is_err() {
            match self.clean_up().await {
                Cleaned::Continues => {}
                Cleaned::Retired => return,
                Cleaned::Ends => {
                    self.core.retire_now(self.agent, &self.tail);
                    return;
                }
            }
        }
    }

    async fn run_and_watch_followers(&self) {
        tokio::select! {
            biased;
            () = self.run_turns() => {}
            () = self.watch_followers(), if self.cancel_on_disconnect => {}
        }
    }

    async fn run_turns(&self) {
        loop {
            let pokes = self.handle.pokes();
            match self.run_next().await {
                Ok(false) if self.core.retire(self.agent, &self.tail, pokes) => return,
                Ok(_) => {}
                Err(why) => {
                    self.give_up(&why);
                    return;
                }
            }
        }
    }

    /// Handles the first open turn: continues it, ends it, or begins it. Returns false if there is no open turn.
    /// Returns true also if nothing ran because the queue changed while the turn waited for its slot: the caller calls
    /// again.
    async fn run_next(&self) -> Result<bool, SaveError> {
        self.until_others_have_told().await?;
        let Some(turn) = self.first_open_turn().await? else { return Ok(false) };
        // Always true, except in the build that hunts for planted bugs.
        let may_not_move = turn.state != TurnState::Queued || planted::correctly(Bug::PromptTwice);
        let is_taken = self.acquired == Acquired::ByTakeover;
        let was_taken_from_here = self.is_here && is_taken && turn.state == TurnState::Running;
        if !self.is_here && may_not_move || was_taken_from_here {
            self.handle.waits_no_more();
            self.end_for_lost_node(turn).await?;
            return Ok(true);
        }
        if turn.state == TurnState::Running {
            // The turn runs already: it takes a slot if one is free, but does not wait for one.
            let _slot = Arc::clone(&self.core.slots).try_acquire_owned();
            self.handle.waits_no_more();
            match self.replay {
                Some(replay) => self.play(replay).await?,
                None => self.resume().await?,
            }
            return Ok(true);
        }
        if turn.stop.is_some() {
            self.end_unstarted(turn, Verdict::cancelled()).await?;
            return Ok(true);
        }
        if self.core.draining.is_cancelled() {
            return self.end_if_left_behind(turn).await;
        }
        self.core.until_in_touch().await.ok_or(SaveError::Closing)?;
        let Some(slot) = self.slot().await? else { return Ok(true) };
        // It may have waited for its slot for long.
        if !self.core.is_in_touch() {
            return Ok(true);
        }
        match self.replay {
            Some(replay) => self.play(replay).await?,
            None => self.run_new_turn().await?,
        }
        drop(slot);
        self.core.note_free_slot();
        Ok(true)
    }

    /// Waits for a slot among the running agents. Returns `None` if the queue has changed meanwhile.
    async fn slot(&self) -> Result<Option<OwnedSemaphorePermit>, SaveError> {
        if let Ok(slot) = Arc::clone(&self.core.slots).try_acquire_owned() {
            self.handle.waits_no_more();
            return Ok(Some(slot));
        }
        self.core.tell_status(self.agent, AgentStatus::Initializing, self.core.now());
        self.handle.waits(&self.core.waiting);
        let slot = tokio::select! {
            biased;
            () = self.core.closing.cancelled() => Err(SaveError::Closing),
            () = self.core.draining.cancelled() => Ok(None),
            () = self.handle.poked.notified() => Ok(None),
            slot = Arc::clone(&self.core.slots).acquire_owned() => Ok(slot.ok()),
        };
        if let Ok(Some(_)) = &slot {
            self.handle.waits_no_more();
        }
        slot
    }

    /// Takes the first waiting turn out of the queue and runs it.
    async fn run_new_turn(&self) -> Result<(), SaveError> {
        let queue = self.handle.queue.lock().await;
        let channels = self.handle.open_channels();
        let Some((mut agent, mut turn)) = self.next_to_start().await? else {
            self.handle.close_channels();
            return Ok(());
        };
        if let Err(error) = self.make_missing_folder(&mut agent).await? {
            self.handle.close_channels();
            return self.end_unstarted(turn, Verdict::failed(error)).await;
        }
        // Before the agent starts, so that the agent's first git commit counts as a change of this turn.
        turn.base = self.core.outside.git.head(Path::new(&agent.cwd)).await;
        let mut recorder = self.recorder(&agent, &turn, SoFar::nothing(self.core.now())).await?;
        self.fill_up(&mut recorder).await?;
        if self.core.closing.is_cancelled() {
            return Err(SaveError::Closing);
        }
        // The turn is saved before its agent starts, so that the journal has the prompt of everything an agent does.
        if let Some(append) = self.user_message(&mut recorder, &mut turn) {
            save_and_announce(&self.core, &self.tail, append).await?;
        }
        drop(queue);
        let done = match self.start_run(&agent, &turn, &mut recorder, &channels.cancel).await? {
            Ok(run) => self.pump(recorder, run, turn, channels, 0).await,
            Err(verdict) => self.end(recorder, verdict).await,
        };
        self.handle.close_channels();
        done
    }

    /// Starts the agent on a turn whose start is saved. Returns the verdict on the turn if that fails, or if the turn
    /// must not begin any more. The run may still report in its end that the program could not be executed.
    async fn start_run(
        &self,
        agent: &Agent,
        turn: &Turn,
        recorder: &mut Recorder,
        cancel: &CancellationToken,
    ) -> Result<Result<Box<dyn IAgentRun>, Verdict>, SaveError> {
        if agent.session.as_deref().is_some_and(|stored| SessionId::new(stored).is_err()) {
            let told = session_invalid("an older version of this server stored the session with");
            recorder.note(told, self.core.now());
        }
        let mut order = order(agent, turn);
        if self.agent_type(agent).is_some_and(|kind| kind.runner.wants_history()) {
            order.history = self.past_turns(turn.number).await?;
        }
        if let Err(error) = self.add_images(&mut order, (turn, self.agent_type(agent))).await? {
            return Ok(Err(Verdict::failed(error)));
        }
        // The start may have been saved so long ago that another node has ended the turn since, and runs the agent.
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(Err(self.stopped(cancel))),
            () = self.core.draining.cancelled() => return Ok(Err(self.stopped(cancel))),
            in_touch = self.core.until_in_touch() => in_touch.ok_or(SaveError::Closing)?,
        }
        let Some(kind) = self.agent_type(agent) else {
            return Ok(Err(Verdict::failed(type_missing(&agent.kind))));
        };
        tokio::select! {
            biased;
            // For a process: `ProcessRunner::start` in `process/runner.rs` of the runner crate.
            started = kind.runner.start(&order) => {
                Ok(started.map_err(|error| Verdict::failed(error.to_agent_error())))
            }
            // The next start of the server finds the turn running, and adopts its run. So a start that was begun goes
            // on: without a run, the turn would be interrupted.
            () = self.core.closing.cancelled(), if !kind.runner.outlives_server() => Err(SaveError::Closing),
        }
    }

    /// Records the user message of a turn, and returns the append that starts the turn.
    fn user_message(&self, recorder: &mut Recorder, turn: &mut Turn) -> Option<Append> {
        turn.first_sequence = Some(recorder.next_sequence());
        recorder.note(
            EventBody::UserMessage { content: turn.prompt.clone(), images: turn.images.clone() },
            self.core.now(),
        );
        recorder.take(TurnStep::Start(Box::new(turn.clone())))
    }

    async fn pump(
        &self,
        recorder: Recorder,
        run: Box<dyn IAgentRun>,
        turn: Turn,
        channels: TurnChannels,
        ran_ms: u64,
    ) -> Result<(), SaveError> {
        let (core, handle, tail) = (Arc::clone(&self.core), Arc::clone(&self.handle), Arc::clone(&self.tail));
        Pump::new(PumpStart { core, handle, tail, recorder, run, turn, channels, ran_ms }).run().await
    }

    /// A recorder that continues the turn. This server owns the agent's journal from here on.
    async fn recorder(&self, agent: &Agent, turn: &Turn, so_far: SoFar) -> Result<Recorder, SaveError> {
        let claimed = self.patiently(|| self.core.outside.agents.claim(agent.id)).await?;
        let epoch = claimed.ok_or(SaveError::Refused(StoreError::Fenced))?;
        let SoFar { assembler, message_count, started_at } = so_far;
        let start = RecorderStart {
            agent: agent.id,
            epoch,
            turn: turn.number,
            started_at,
            head: agent.head,
            assembler,
            committed: turn.spool_offset,
            message_count,
        };
        let parser = match self.agent_type(agent) {
            Some(kind) => (kind.parser)(),
            None => Box::new(NoParser),
        };
        Ok(Recorder::new(start, parser))
    }

    async fn agent_row(&self) -> Result<Option<Agent>, SaveError> {
        self.patiently(|| self.core.outside.agents.get(self.agent)).await
    }

    fn agent_type(&self, agent: &Agent) -> Option<&AgentType> {
        self.core.outside.types.get(&agent.kind)
    }

    /// Repeats a read while the store fails with a transient error.
    async fn patiently<T, F>(&self, ask: impl Fn() -> F) -> Result<T, SaveError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = self.core.limits.saving.retry_pause;
        loop {
            match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_transient() => {
                    tracing::warn!(agent = %self.agent, error = &error as &dyn std::error::Error, "cannot read from the database; retrying");
                    pause = self.core.pause(pause).await.ok_or(SaveError::Closing)?;
                }
                Err(error) => return Err(SaveError::Refused(error)),
            }
        }
    }
}

fn type_missing(kind: &str) -> AgentError {
    let text = format!(
        "the agent type {kind:?} is no longer configured; add it to the configuration, restart the server and send the message again"
    );
    AgentError::new(ErrorClass::Process, Some("runner_unknown"), text).recoverable()
}

/// Replaces the parser if the agent's type is no longer configured: there is no output to read.
struct NoParser;

impl tokenrail_ports::IMessageParser for NoParser {
    fn parse(&mut self, _line: &[u8], _said: &mut Vec<tokenrail_domain::Said>) {}

    fn activity(&self) -> tokenrail_ports::Activity {
        tokenrail_ports::Activity::default()
    }
}
