//! Gives an agent its next turn.

use tokenrail_domain::{Agent, AgentId, ImageFile, Turn, TurnNumber};
use tokenrail_ports::{Enqueued, Idempotency, KeyLife, NewTurn, Recalled, StoreError};
use tokio::time::Instant;

use super::idempotency::CommandKey;
use crate::error::Refusal;
use crate::service::AgentService;

/// A message that became a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub turn: TurnNumber,
    /// How many turns wait, this one included.
    pub queued: u32,
}

/// What a user says to an agent: a text, and images.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<ImageFile>,
}

/// A prompt without images.
impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A message on its way to an agent.
pub(crate) struct SentMessage {
    pub(crate) agent: AgentId,
    pub(crate) prompt: Prompt,
    /// The number that the turn must get.
    pub(crate) only_as: Option<TurnNumber>,
    pub(crate) key: Option<CommandKey>,
    pub(crate) life: KeyLife,
}

/// The scope of the keys of an agent's messages.
fn scope(agent: AgentId) -> String {
    format!("message:{agent}")
}

impl AgentService {
    /// Gives an agent one more message: its next turn.
    ///
    /// # Errors
    /// [`Refusal`] if the message was not accepted.
    pub async fn send(
        &self,
        id: AgentId,
        prompt: Prompt,
        key: Option<CommandKey>,
    ) -> Result<Accepted, Refusal> {
        let life = KeyLife::UntilForgotten;
        self.send_message(SentMessage { agent: id, prompt, only_as: None, key, life }).await
    }

    /// Like [`AgentService::send`], but the message must become this turn: of two clients that continue from the same
    /// turn at the same moment, one is refused. A message that the key has sent before is not sent again.
    ///
    /// # Errors
    /// [`Refusal::TurnTaken`] if the next turn of the agent is another one; any other [`Refusal`] if the message was
    /// not accepted.
    pub async fn send_as(
        &self,
        id: AgentId,
        turn: TurnNumber,
        prompt: Prompt,
        key: Option<CommandKey>,
    ) -> Result<Accepted, Refusal> {
        let life = KeyLife::UntilForgotten;
        self.send_message(SentMessage { agent: id, prompt, only_as: Some(turn), key, life }).await
    }

    /// The turn that a message with this key became. `None` if there was none.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`] if the message was another one; [`Refusal::Store`].
    pub async fn sent(&self, agent: AgentId, key: &CommandKey) -> Result<Option<TurnNumber>, Refusal> {
        let recalled = self.recall(scope(agent), key, KeyLife::UntilForgotten).await?;
        Ok(recalled.map(|recalled| recalled.turn))
    }

    pub(crate) async fn send_message(&self, message: SentMessage) -> Result<Accepted, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_send(message).await }).await
    }

    /// Tries again while the store is busy: after a failover, it waits for what other servers save again. Between two
    /// tries, the queue is free for other commands.
    async fn do_send(&self, message: SentMessage) -> Result<Accepted, Refusal> {
        let SentMessage { agent: id, prompt, only_as, key, life } = message;
        if let Some(key) = &key
            && let Some(Recalled { turn, queued, .. }) = self.recall(scope(id), key, life).await?
        {
            self.repeated(&self.get(id).await?);
            return Ok(Accepted { turn, queued });
        }
        self.check_running()?;
        let key = match key {
            Some(key) => Some(self.idempotency(scope(id), key, life).await?),
            None => None,
        };
        let deadline = self.core.command_deadline();
        let mut pause = self.core.limits.saving.retry_pause;
        loop {
            match self.try_send((id, only_as), &prompt, key.clone(), deadline).await? {
                Some(accepted) => return Ok(accepted),
                None if Instant::now() + pause < deadline => {
                    pause = self.core.pause(pause).await.ok_or(Refusal::ShuttingDown)?;
                }
                None => return Err(StoreError::Busy.into()),
            }
        }
    }

    /// One try. What decides about the message is read after the wait for the queue, and again with each try. Returns
    /// `None` if the store is busy: then nothing was saved.
    async fn try_send(
        &self,
        (id, only_as): (AgentId, Option<TurnNumber>),
        prompt: &Prompt,
        key: Option<Idempotency>,
        deadline: Instant,
    ) -> Result<Option<Accepted>, Refusal> {
        let core = &self.core;
        let handle = core.task_handle(id);
        let _queue = match &handle {
            Some(handle) => Some(core.lock_queue(handle, deadline).await?),
            None => None,
        };
        let agent = self.addressee(id, &prompt.images).await?;
        self.check_running()?;
        let turn = NewTurn::new(Turn::queued(id, prompt.text.clone(), core.now()), prompt.images.clone());
        // The next step: `enqueue` in `store/ports.rs` of `sqlite/` or `postgres/`, in the persistence crate. The limit
        // of queued turns is checked there, by `rules::is_queue_full` of the ports.
        match core
            .outside
            .agents
            .enqueue(turn.only_as(only_as), core.limits.admission.queued_turns, key)
            .await
        {
            Ok(Enqueued::New { turn, queued, unarchived }) => {
                self.note_queued(agent, unarchived).await;
                Ok(Some(Accepted { turn, queued }))
            }
            Ok(Enqueued::Again { turn, queued }) => {
                self.repeated(&agent);
                Ok(Some(Accepted { turn, queued }))
            }
            Ok(Enqueued::KeyReused) => Err(Refusal::KeyReused),
            Ok(Enqueued::OtherNumber) => Err(Refusal::TurnTaken(only_as.unwrap_or_default())),
            Ok(Enqueued::QueueFull) => Err(Refusal::QueueFull),
            // It was deleted or purged since it was read.
            Ok(Enqueued::UnknownAgent) => Err(self.get(id).await.err().unwrap_or(Refusal::Deleted)),
            Err(StoreError::Busy) => Ok(None),
            Err(error) => Err(self.refused_or_unknown(&agent, error)),
        }
    }

    /// The agent, if it takes messages with these images.
    async fn addressee(&self, id: AgentId, images: &[ImageFile]) -> Result<Agent, Refusal> {
        let agent = self.get(id).await?;
        if agent.deleted_at.is_some() {
            return Err(Refusal::Deleted);
        }
        if agent.copy.is_some() {
            return Err(Refusal::ReadOnly);
        }
        self.check_images(&agent.kind, images)?;
        self.core.reachable(agent).await
    }

    fn check_running(&self) -> Result<(), Refusal> {
        let is_stopping = self.core.closing.is_cancelled() || self.core.draining.is_cancelled();
        if is_stopping { Err(Refusal::ShuttingDown) } else { Ok(()) }
    }

    /// The agent has one more turn that waits.
    async fn note_queued(&self, mut agent: Agent, unarchived: bool) {
        let (core, id) = (&self.core, agent.id);
        if unarchived {
            agent.archived = false;
            core.note_edited(&agent);
            core.tell_edited(id, agent.status, core.now());
        }
        let had_task = self.ensure_task(&agent);
        if had_task || !core.is_here(&agent) {
            // The turn waits. Nothing else announces that the queue has grown. Another turn may have ended since the
            // agent was read.
            let status = match core.outside.agents.get(id).await {
                Ok(Some(now)) => now.status,
                Ok(None) | Err(_) => agent.status,
            };
            core.tell_status(id, status, core.now());
        }
    }

    /// The first attempt to send a message may have been answered with an unknown outcome. Then no task runs the turn
    /// yet, and clients do not know that the agent is back in the lists.
    fn repeated(&self, agent: &Agent) {
        self.core.tell_edited(agent.id, agent.status, self.core.now());
        self.ensure_task(agent);
    }
}
