//! Gives an agent its next turn.

use tokenrail_domain::{Agent, AgentId, ImageFile, Turn, TurnNumber};
use tokenrail_ports::{Enqueued, Idempotency, KeyLife, NewTurn, Recalled, StoreError};
use tokio::time::Instant;

use super::keys::CommandKey;
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
    pub(crate) key: Option<CommandKey>,
    pub(crate) life: KeyLife,
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
        self.send_message(SentMessage { agent: id, prompt, key, life: KeyLife::UntilForgotten }).await
    }

    pub(crate) async fn send_message(&self, message: SentMessage) -> Result<Accepted, Refusal> {
        let service = self.clone();
        self.undisturbed(async move { service.do_send(message).await }).await
    }

    async fn do_send(&self, message: SentMessage) -> Result<Accepted, Refusal> {
        let SentMessage { agent: id, prompt: Prompt { text, images }, key, life } = message;
        let scope = format!("message:{id}");
        if let Some(key) = &key
            && let Some(Recalled { turn, queued, .. }) = self.recall(scope.clone(), key, life).await?
        {
            self.repeated(&self.get(id).await?);
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
        self.check_images(&agent.kind, &images)?;
        let agent = self.core.reachable(agent).await?;
        let now = self.core.now();
        let key = match key {
            Some(key) => Some(self.idempotency(scope, key, life).await?),
            None => None,
        };
        let turn = NewTurn::new(Turn::queued(id, text, now), images);
        let has_task = self.core.task_handle(id).is_some();
        match self.enqueue(turn, key).await {
            Ok(Enqueued::New { turn, queued, unarchived }) => {
                if unarchived {
                    self.core.tell_edited(id, agent.status, now);
                }
                self.ensure_task(&agent);
                if has_task || !self.core.is_here(&agent) {
                    // The turn waits. Nothing else announces that the queue has grown.
                    self.core.tell_status(id, agent.status, now);
                }
                Ok(Accepted { turn, queued })
            }
            Ok(Enqueued::Again { turn, queued }) => {
                self.repeated(&agent);
                Ok(Accepted { turn, queued })
            }
            Ok(Enqueued::KeyReused) => Err(Refusal::KeyReused),
            Ok(Enqueued::QueueFull) => Err(Refusal::QueueFull),
            Ok(Enqueued::UnknownAgent) => Err(Refusal::NotFound(id)),
            Err(error) => Err(self.refused_or_unknown(&agent, error)),
        }
    }

    /// Tries again while the store is busy: after a failover, it waits for what other servers save again. Between two
    /// tries, the queue is free for other commands.
    async fn enqueue(&self, turn: NewTurn, key: Option<Idempotency>) -> Result<Enqueued, StoreError> {
        let core = &self.core;
        let until = Instant::now() + core.limits.commands.command_timeout;
        let mut pause = core.limits.saving.retry_pause;
        loop {
            let handle = core.task_handle(turn.turn().agent);
            let queue = match &handle {
                Some(handle) => Some(core.lock_queue(handle).await?),
                None => None,
            };
            let (turn, key) = (turn.clone(), key.clone());
            let answer = core.outside.agents.enqueue(turn, core.limits.admission.queued_turns, key).await;
            drop(queue);
            match answer {
                Err(StoreError::Busy) if Instant::now() + pause < until => {
                    pause = core.pause(pause).await.ok_or(StoreError::Busy)?;
                }
                answer => return answer,
            }
        }
    }

    /// The first attempt to send a message may have been answered with an unknown outcome. Then no task runs the turn
    /// yet, and clients do not know that the agent is back in the lists.
    fn repeated(&self, agent: &Agent) {
        self.core.tell_edited(agent.id, agent.status, self.core.now());
        self.ensure_task(agent);
    }
}
