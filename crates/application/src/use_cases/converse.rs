//! Conversations, which clients name by ids of their own.

use tokenrail_domain::{Agent, AgentId, TurnNumber};
use tokenrail_ports::KeyLife;

use super::keys::CommandKey;
use super::launch::Launch;
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
    /// Says something in the conversation `chat`: its first message launches an agent as `launch` says, each later
    /// one is the agent's next turn. With a key, the same message again is said once, whichever of the two it was, as
    /// long as it is the newest: what was said before that and is said again is meant.
    ///
    /// # Errors
    /// [`Refusal`] where it was not said.
    pub async fn converse(&self, chat: String, launch: Launch) -> Result<ConversationTurn, Refusal> {
        // A launch's keys are all of one scope; of a message, the agent is a part of the scope.
        let first_key = launch.idempotency.as_ref().map(|key| in_chat(&chat, key));
        let agent = if let Some(agent) = self.by_chat(chat.clone()).await? {
            agent.id
        } else {
            let first = Launch { chat: Some(chat), idempotency: first_key.clone(), ..launch.clone() };
            let outcome = self.launch_once(first, KeyLife::WhileNewest).await?;
            if !outcome.again {
                return Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST });
            }
            outcome.agent.id
        };
        // There is an agent: it may be this very message that has launched it, a moment ago or long since. That is
        // asked last, for whoever says the same at the same time may have been faster until here.
        if let Some(key) = &first_key
            && let Some(outcome) = self.launched(key, KeyLife::WhileNewest).await?
        {
            return Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST });
        }
        self.say(agent, launch.prompt, launch.idempotency).await
    }

    /// Begins a conversation that has no id: each launches an agent as `launch` says. With a key, the same beginning
    /// again is the same conversation, as long as nothing else was said in it.
    ///
    /// # Errors
    /// [`Refusal`] where it was not begun.
    pub async fn begin(&self, launch: Launch) -> Result<ConversationTurn, Refusal> {
        let idempotency = launch.idempotency.as_ref().map(without_chat);
        let outcome = self.launch_once(Launch { idempotency, ..launch }, KeyLife::WhileNewest).await?;
        Ok(ConversationTurn { agent: outcome.agent.id, turn: TurnNumber::FIRST })
    }

    /// Says something to an agent: its next turn. With a key, as [`AgentService::converse`] says it.
    ///
    /// # Errors
    /// [`Refusal`] where it was not said.
    pub async fn say(
        &self,
        agent: AgentId,
        content: String,
        key: Option<CommandKey>,
    ) -> Result<ConversationTurn, Refusal> {
        let accepted = self.send_with(agent, content, key, KeyLife::WhileNewest).await?;
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

/// The key of a conversation's first message: another conversation may use the same one.
fn in_chat(chat: &str, key: &CommandKey) -> CommandKey {
    // The length keeps what belongs to the one from being read as the other's.
    CommandKey { key: format!("chat:{}:{chat}:{}", chat.len(), key.key), body: key.body.clone() }
}

/// The key of the first message of a conversation that has no id.
fn without_chat(key: &CommandKey) -> CommandKey {
    CommandKey { key: format!("begin:{}", key.key), body: key.body.clone() }
}
