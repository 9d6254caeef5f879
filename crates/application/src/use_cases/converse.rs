//! Conversations: agents that clients address by ids of their own.

use tokenrail_domain::{Agent, AgentId, TurnNumber};
use tokenrail_ports::KeyLife;

use super::idempotency::CommandKey;
use super::launch::{Launch, LaunchOutcome};
use super::send::{Prompt, SentMessage};
use crate::error::Refusal;
use crate::service::AgentService;

/// The turn of a conversation that a message became.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationTurn {
    /// The agent of the conversation.
    pub agent: AgentId,
    pub turn: TurnNumber,
}

impl AgentService {
    /// Sends a message to the conversation `chat`. The first message launches an agent as `launch` says; each later
    /// one becomes the agent's next turn. With a key, a repeated message is accepted only once, whether it launched
    /// the agent or became a turn, while it is the conversation's newest message. A repetition of an older message is
    /// deliberate and becomes a new turn. If `launch` names an agent type, a message to an agent of another type is
    /// refused.
    ///
    /// # Errors
    /// [`Refusal`] if the message was not accepted.
    pub async fn converse(&self, chat: String, launch: Launch) -> Result<ConversationTurn, Refusal> {
        self.converse_for(chat, launch, KeyLife::WhileNewest).await
    }

    /// Like [`AgentService::converse`], but the key stays good as long as the server remembers it: a repeated message
    /// is accepted only once, whatever was said since.
    ///
    /// # Errors
    /// [`Refusal`] if the message was not accepted.
    pub async fn converse_once(&self, chat: String, launch: Launch) -> Result<ConversationTurn, Refusal> {
        self.converse_for(chat, launch, KeyLife::UntilForgotten).await
    }

    /// Begins the conversation `chat`: launches an agent as `launch` says. `None` if the conversation has one already,
    /// also if another request has launched it at the same moment, or this very message before. Then nothing was sent,
    /// and [`AgentService::converse_once`] can say to the agent what it does not know yet.
    ///
    /// # Errors
    /// [`Refusal`] if the conversation was not begun.
    pub async fn begin_chat(
        &self,
        chat: String,
        launch: Launch,
    ) -> Result<Option<ConversationTurn>, Refusal> {
        let idempotency = launch.idempotency.as_ref().map(|key| in_chat(&chat, key));
        let first = Launch { chat: Some(chat), idempotency, ..launch };
        let LaunchOutcome { agent, again } = self.launch_once(first, KeyLife::UntilForgotten).await?;
        Ok((!again).then_some(ConversationTurn { agent: agent.id, turn: TurnNumber::FIRST }))
    }

    async fn converse_for(
        &self,
        chat: String,
        launch: Launch,
        life: KeyLife,
    ) -> Result<ConversationTurn, Refusal> {
        // All launches share one scope of keys, so this key must contain the conversation. The scope of a message
        // contains the agent already.
        let first_key = launch.idempotency.as_ref().map(|key| in_chat(&chat, key));
        let agent = if let Some(agent) = self.by_chat(chat.clone()).await? {
            agent
        } else {
            let first = Launch { chat: Some(chat), idempotency: first_key.clone(), ..launch.clone() };
            let outcome = self.launch_once(first, life).await?;
            if !outcome.again {
                return Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST });
            }
            outcome.agent
        };
        // The client may have asked whether there is an agent, but another one may have launched it since.
        if launch.kind.is_some_and(|kind| kind != agent.kind) {
            return Err(Refusal::OtherType { kind: agent.kind });
        }
        let agent = agent.id;
        // The agent exists. It may have been launched by this very message, just now or long ago. This is checked
        // last, because a concurrent request with the same message may have launched it until here.
        if let Some(key) = &first_key
            && let Some(outcome) = self.launched(key, life).await?
        {
            return Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST });
        }
        let Launch { prompt: text, images, idempotency: key, .. } = launch;
        let message = SentMessage { agent, prompt: Prompt { text, images }, only_as: None, key, life };
        let accepted = self.send_message(message).await?;
        Ok(ConversationTurn { agent, turn: accepted.turn })
    }

    /// The turn that a message with this key became, whether it launched the agent of the conversation or not. `None`
    /// if there was none.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`] if the message was another one; [`Refusal::Store`].
    pub async fn conversed(
        &self,
        chat: &str,
        agent: AgentId,
        key: &CommandKey,
    ) -> Result<Option<TurnNumber>, Refusal> {
        match self.launched(&in_chat(chat, key), KeyLife::UntilForgotten).await? {
            Some(outcome) if outcome.agent.id == agent => Ok(Some(TurnNumber::FIRST)),
            _ => self.sent(agent, key).await,
        }
    }

    /// Begins a conversation that has no id: launches an agent as `launch` says. With a key, a repeated beginning
    /// returns the same conversation, while nothing else was said in it.
    ///
    /// # Errors
    /// [`Refusal`] if the conversation was not begun.
    pub async fn begin(&self, launch: Launch) -> Result<ConversationTurn, Refusal> {
        let idempotency = launch.idempotency.as_ref().map(without_chat);
        let outcome = self.launch_once(Launch { idempotency, ..launch }, KeyLife::WhileNewest).await?;
        Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST })
    }

    /// Sends a message to an agent: its next turn. The key works as in [`AgentService::converse`].
    ///
    /// # Errors
    /// [`Refusal`] if the message was not accepted.
    pub async fn say(
        &self,
        agent: AgentId,
        content: String,
        key: Option<CommandKey>,
    ) -> Result<ConversationTurn, Refusal> {
        let life = KeyLife::WhileNewest;
        let message = SentMessage { agent, prompt: content.into(), only_as: None, key, life };
        let accepted = self.send_message(message).await?;
        Ok(ConversationTurn { agent, turn: accepted.turn })
    }

    /// The agent of a conversation, if there is one that is not deleted.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn by_chat(&self, chat: String) -> Result<Option<Agent>, Refusal> {
        Ok(self.core.outside.agents.by_chat(chat).await?)
    }
}

/// The key of a conversation's first message. It contains the conversation, because another one may use the same key.
fn in_chat(chat: &str, key: &CommandKey) -> CommandKey {
    // The length separates the chat id from the key, whatever characters they contain.
    CommandKey { key: format!("chat:{}:{chat}:{}", chat.len(), key.key), body: key.body.clone() }
}

/// The key of the first message of a conversation that has no id.
fn without_chat(key: &CommandKey) -> CommandKey {
    CommandKey { key: format!("begin:{}", key.key), body: key.body.clone() }
}
