//! The use cases that change something: launch and send; `create` has the agent without a turn, `stop` cancel and
//! delete, `answer` the answers to questions.

mod answer;
mod create;
mod stop;

pub use answer::AnswerOutcome;

use std::sync::Arc;

use tokenrail_domain::{
    Agent, AgentId, AgentStatus, Copied, JsonText, Sequence, SessionId, Timestamp, Turn, TurnNumber,
    TurnState,
};
#[cfg(planted_bugs)]
use tokenrail_ports::planted::{Bug, is_planted};
use tokenrail_ports::{Created, Enqueued, Idempotency, KeyLife, Recalled, StoreError};

use crate::agent_task::AgentTask;
use crate::error::Refusal;
use crate::outside::AgentType;
use crate::service::AgentService;
use crate::waiting::Waiting;

/// The scope of the keys of launches.
const LAUNCH: &str = "launch";

/// What a client asks for with a launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// The agent type; none for the configured default.
    pub kind: Option<String>,
    pub prompt: String,
    pub model: Option<String>,
    pub cwd: Option<String>,
    /// A session of the agent program to resume.
    pub session: Option<SessionId>,
    pub name: Option<String>,
    /// The client's own id of the conversation: see [`AgentService::converse`].
    pub chat: Option<String>,
    /// The client's own notes: a JSON object.
    pub metadata: Option<JsonText>,
    /// Options for the runner: a JSON object.
    pub options: Option<JsonText>,
    pub cancel_on_disconnect: bool,
    pub idempotency: Option<CommandKey>,
}

/// The client's key for a command, and the command as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandKey {
    pub key: String,
    pub body: String,
}

/// What came of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchOutcome {
    pub agent: Agent,
    /// Nothing was launched: this is the agent that the idempotency key launched, or that the conversation has.
    pub again: bool,
}

/// A message that became a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub turn: TurnNumber,
    /// How many turns wait, this one included.
    pub queued: u32,
}

impl AgentService {
    /// Saves a new agent and starts it.
    ///
    /// # Errors
    /// [`Refusal`] where it was not launched; nothing is left of it then.
    pub async fn launch(&self, launch: Launch) -> Result<LaunchOutcome, Refusal> {
        self.launch_with(launch, KeyLife::UntilForgotten).await
    }

    pub(crate) async fn launch_with(&self, launch: Launch, life: KeyLife) -> Result<LaunchOutcome, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_launch(launch, life).await }).await
    }

    async fn do_launch(&self, launch: Launch, life: KeyLife) -> Result<LaunchOutcome, Refusal> {
        if let Some(key) = &launch.idempotency
            && let Some(outcome) = self.launched_with(key, life).await?
        {
            return Ok(outcome);
        }
        let (kind, config) = self.kind(launch.kind.as_deref())?;
        let waiting = self.admit()?;
        let now = self.core.now();
        let id = AgentId::new(now, self.core.outside.random.bytes());
        let cwd = config.workspace.folder(id, launch.cwd.clone()).await?;
        let key = match launch.idempotency.clone() {
            Some(key) => Some(self.idempotency(LAUNCH.to_owned(), key, life).await?),
            None => None,
        };
        let agent = new_agent(id, kind, launch, cwd.to_string_lossy().into_owned(), now);
        let turn = new_turn(id, agent.prompt.clone(), now);

        let created = self.core.outside.agents.create(agent.clone(), turn, key).await;
        if !matches!(created, Ok(Created::New) | Err(StoreError::OutcomeUnknown(_))) {
            // There is no such agent: nothing is left of it.
            self.remove_folders(id).await;
        }
        match created {
            Ok(Created::New) => {}
            Ok(Created::Again(id) | Created::ChatTaken(id)) => return self.known(id).await,
            Ok(Created::KeyReused) => return Err(Refusal::KeyReused),
            Err(error) => return Err(self.refused(&agent, error)),
        }
        // Its own task waits for a place from here on.
        drop(waiting);
        self.ensure_task(&agent);
        self.core.tell_created(&agent, now);
        Ok(LaunchOutcome { agent, again: false })
    }

    /// What an earlier launch with this key came to, whatever the server could take on now; none where the key is
    /// not known.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`], [`Refusal::Store`].
    pub async fn launched_before(&self, key: &CommandKey) -> Result<Option<LaunchOutcome>, Refusal> {
        self.launched_with(key, KeyLife::UntilForgotten).await
    }

    pub(crate) async fn launched_with(
        &self,
        key: &CommandKey,
        life: KeyLife,
    ) -> Result<Option<LaunchOutcome>, Refusal> {
        match self.recall(LAUNCH.to_owned(), key, life).await? {
            Some(recalled) => Ok(Some(self.known(recalled.agent).await?)),
            None => Ok(None),
        }
    }

    /// An agent whose launch is asked for again.
    async fn known(&self, id: AgentId) -> Result<LaunchOutcome, Refusal> {
        let agent = self.get(id).await?;
        #[cfg(planted_bugs)]
        if is_planted(Bug::KnownIsNotRun) {
            return Ok(LaunchOutcome { agent, again: true });
        }
        // The first answer may have been that the outcome is unknown: then nobody runs it yet.
        self.ensure_task(&agent);
        Ok(LaunchOutcome { agent, again: true })
    }

    /// What the key was used for, if it is known.
    async fn recall(
        &self,
        scope: String,
        key: &CommandKey,
        life: KeyLife,
    ) -> Result<Option<Recalled>, Refusal> {
        let key = self.idempotency(scope, key.clone(), life).await?;
        match self.core.outside.agents.recall(key).await? {
            Some(recalled) if !recalled.same_body => Err(Refusal::KeyReused),
            recalled => Ok(recalled),
        }
    }

    /// Gives an agent one more message: its next turn.
    ///
    /// # Errors
    /// [`Refusal`] where it was not taken.
    pub async fn send(
        &self,
        id: AgentId,
        content: String,
        key: Option<CommandKey>,
    ) -> Result<Accepted, Refusal> {
        self.send_with(id, content, key, KeyLife::UntilForgotten).await
    }

    pub(crate) async fn send_with(
        &self,
        id: AgentId,
        content: String,
        key: Option<CommandKey>,
        life: KeyLife,
    ) -> Result<Accepted, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_send(id, content, key, life).await }).await
    }

    async fn do_send(
        &self,
        id: AgentId,
        content: String,
        key: Option<CommandKey>,
        life: KeyLife,
    ) -> Result<Accepted, Refusal> {
        #[cfg(planted_bugs)]
        let key = key.filter(|_| !is_planted(Bug::KeyForgotten));
        let scope = format!("message:{id}");
        if let Some(key) = &key
            && let Some(Recalled { turn, queued, .. }) = self.recall(scope.clone(), key, life).await?
        {
            // As in `known`.
            self.ensure_task(&self.get(id).await?);
            return Ok(Accepted { turn, queued });
        }
        if self.core.closing.is_cancelled() || self.core.draining.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        let agent = self.get(id).await?;
        if agent.deleted_at.is_some() {
            return Err(Refusal::Deleted);
        }
        if agent.copy.is_some() {
            return Err(Refusal::ReadOnly);
        }
        let now = self.core.now();
        let key = match key {
            Some(key) => Some(self.idempotency(scope, key, life).await?),
            None => None,
        };
        let turn = new_turn(id, content, now);
        let control = self.core.control(id);
        let queue = match &control {
            Some(control) => Some(self.core.queue(control).await?),
            None => None,
        };
        let accepted = self.core.outside.agents.enqueue(turn, self.core.limits.queued_turns, key).await;
        drop(queue);
        match accepted {
            Ok(Enqueued::New { turn, queued }) => {
                self.ensure_task(&agent);
                if control.is_some() {
                    // It waits: nothing else tells those who look on that the queue is longer.
                    self.core.tell_status(id, agent.status, now);
                }
                Ok(Accepted { turn, queued })
            }
            // The first answer to the same key may have been that the outcome is unknown: then nobody runs it yet.
            Ok(Enqueued::Again { turn, queued }) => {
                self.ensure_task(&agent);
                Ok(Accepted { turn, queued })
            }
            Ok(Enqueued::KeyReused) => Err(Refusal::KeyReused),
            Ok(Enqueued::QueueFull) => Err(Refusal::QueueFull),
            Ok(Enqueued::UnknownAgent) => Err(Refusal::NotFound(id)),
            Err(error) => Err(self.refused(&agent, error)),
        }
    }

    /// Does a command to its end, also when whoever asked for it has gone meanwhile: half of one is none.
    pub(crate) async fn undisturbed<T: Send + 'static>(
        &self,
        command: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        match self.core.tracker.spawn_on(command, &self.core.runtime).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Refusal::ShuttingDown),
            },
        }
    }

    /// A turn that could not be saved, or perhaps could: in that case somebody must look for it.
    fn refused(&self, agent: &Agent, error: StoreError) -> Refusal {
        #[cfg(planted_bugs)]
        if is_planted(Bug::KnownIsNotRun) {
            return Refusal::Store(error);
        }
        if let StoreError::OutcomeUnknown(_) = error {
            self.ensure_task(agent);
        }
        Refusal::Store(error)
    }

    /// Makes sure that somebody runs what the agent has to run.
    pub(crate) fn ensure_task(&self, agent: &Agent) {
        let tail = self.core.tails.of(agent.id);
        if let Some(control) = self.core.poke_or_register(agent.id, &tail) {
            let core = Arc::clone(&self.core);
            let cancel_on_disconnect = agent.cancel_on_disconnect;
            #[cfg(planted_bugs)]
            let cancel_on_disconnect = cancel_on_disconnect || is_planted(Bug::DisconnectCancels);
            let replay = match agent.copy {
                Some(Copied::Replay(replay)) => Some(replay),
                Some(Copied::File) | None => None,
            };
            let task = AgentTask { core, agent: agent.id, control, tail, cancel_on_disconnect, replay };
            self.core.tracker.spawn_on(task.run(), &self.core.runtime);
        }
    }

    fn kind(&self, asked: Option<&str>) -> Result<(String, &AgentType), Refusal> {
        let outside = &self.core.outside;
        let name = asked.or(outside.default_type.as_deref()).ok_or(Refusal::TypeMissing)?;
        match outside.types.get(name) {
            Some(kind) => Ok((name.to_owned(), kind)),
            None => Err(outside.unknown_type(name)),
        }
    }

    /// Lets one more agent in: it waits for a place until its task does.
    pub(crate) fn admit(&self) -> Result<Waiting, Refusal> {
        if self.core.closing.is_cancelled() || self.core.draining.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        let free = self.core.places.available_permits();
        self.core.waiting.enter_unless(free + self.core.limits.queued_launches).ok_or(Refusal::AtCapacity)
    }

    async fn idempotency(
        &self,
        scope: String,
        key: CommandKey,
        life: KeyLife,
    ) -> Result<Idempotency, StoreError> {
        let used_at = self.core.key_time().await?;
        #[cfg(planted_bugs)]
        let used_at = if is_planted(Bug::KeysByTheClock) { self.core.now() } else { used_at };
        let age_ms = self.core.limits.idempotency_age.as_millis() as i64;
        let forget_before = Timestamp(used_at.0.saturating_sub(age_ms));
        Ok(Idempotency { scope, key: key.key, body: key.body, used_at, forget_before, life })
    }
}

fn new_agent(id: AgentId, kind: String, launch: Launch, cwd: String, now: Timestamp) -> Agent {
    let Launch {
        kind: _,
        prompt,
        model,
        cwd: _,
        session,
        name,
        chat,
        metadata,
        options,
        cancel_on_disconnect,
        idempotency: _,
    } = launch;
    Agent {
        id,
        kind,
        name,
        chat,
        status: AgentStatus::Initializing,
        prompt,
        model,
        cwd,
        session: session.map(SessionId::into_string),
        turn: TurnNumber::FIRST,
        queued: 1,
        head: Sequence::START,
        created_at: now,
        updated_at: now,
        ended_at: None,
        deleted_at: None,
        error: None,
        usage: None,
        cost_usd: None,
        metadata,
        options,
        cancel_on_disconnect,
        copy: None,
    }
}

fn new_turn(agent: AgentId, prompt: String, now: Timestamp) -> Turn {
    Turn {
        agent,
        number: TurnNumber::FIRST,
        run: TurnNumber::FIRST,
        prompt,
        state: TurnState::Queued,
        asked_at: now,
        first_sequence: None,
        last_sequence: None,
        spool_offset: 0,
        stop: None,
    }
}
