//! Conversations that clients name by ids of their own, and their turns.

use tokenrail_domain::{Agent, AgentId, ListedTurn, Sequence, Turn, TurnNumber};
use tokenrail_ports::{KeyLife, ListBounds, ListPage, TurnFilter, TurnRange};

use crate::commands::{CommandKey, Launch};
use crate::error::Refusal;
use crate::service::AgentService;

/// What came of saying something in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The agent of the conversation.
    pub agent: AgentId,
    /// The turn that the message became.
    pub turn: TurnNumber,
}

impl AgentService {
    /// Says something in the conversation `chat`: its first message launches an agent as `launch` says, each later
    /// one is the agent's next turn. With a key, the same message again is said once, whichever of the two it was, as
    /// long as it is the newest: what was said before that and is said again is meant.
    ///
    /// # Errors
    /// [`Refusal`] where it was not said.
    pub async fn converse(&self, chat: String, launch: Launch) -> Result<Said, Refusal> {
        // A launch's keys are all of one scope; of a message, the agent is a part of the scope.
        let first_key = launch.idempotency.as_ref().map(|key| in_chat(&chat, key));
        let agent = if let Some(agent) = self.by_chat(chat.clone()).await? {
            agent.id
        } else {
            let first = Launch { chat: Some(chat), idempotency: first_key.clone(), ..launch.clone() };
            let outcome = self.launch_with(first, KeyLife::WhileNewest).await?;
            if !outcome.again {
                return Ok(Said { agent: outcome.agent.id, turn: TurnNumber::FIRST });
            }
            outcome.agent.id
        };
        // There is an agent: it may be this very message that has launched it, a moment ago or long since. That is
        // asked last, for whoever says the same at the same time may have been faster until here.
        if let Some(key) = &first_key
            && let Some(outcome) = self.launched_with(key, KeyLife::WhileNewest).await?
        {
            return Ok(Said { agent: outcome.agent.id, turn: TurnNumber::FIRST });
        }
        self.say(agent, launch.prompt, launch.idempotency).await
    }

    /// Begins a conversation that has no id: each launches an agent as `launch` says. With a key, the same beginning
    /// again is the same conversation, as long as nothing else was said in it.
    ///
    /// # Errors
    /// [`Refusal`] where it was not begun.
    pub async fn begin(&self, launch: Launch) -> Result<Said, Refusal> {
        let idempotency = launch.idempotency.as_ref().map(without_chat);
        let outcome = self.launch_with(Launch { idempotency, ..launch }, KeyLife::WhileNewest).await?;
        Ok(Said { agent: outcome.agent.id, turn: TurnNumber::FIRST })
    }

    /// The conversation that was begun with this key, as [`AgentService::begin`] would find it.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`], [`Refusal::Store`].
    pub async fn begun(&self, key: &CommandKey) -> Result<Option<Said>, Refusal> {
        let outcome = self.launched_with(&without_chat(key), KeyLife::WhileNewest).await?;
        Ok(outcome.map(|outcome| Said { agent: outcome.agent.id, turn: TurnNumber::FIRST }))
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
    ) -> Result<Said, Refusal> {
        let accepted = self.send_with(agent, content, key, KeyLife::WhileNewest).await?;
        Ok(Said { agent, turn: accepted.turn })
    }

    /// The agent of a conversation, if there is one that is not deleted.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn by_chat(&self, chat: String) -> Result<Option<Agent>, Refusal> {
        Ok(self.core.outside.agents.by_chat(chat).await?)
    }

    /// The agent's whole turns after `after`, waiting, running and ended, by number: at most `limits.list_agents` and
    /// about `limits.page_bytes` at once. There are no more only where none is given.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn turns(&self, id: AgentId, after: TurnNumber, limit: usize) -> Result<Vec<Turn>, Refusal> {
        let limits = &self.core.limits;
        let limit = limit.min(limits.list_agents);
        let turns = self.core.outside.agents.turns(id, after, limit, limits.page_bytes).await?;
        if turns.is_empty() {
            // Where there are none, it may be for want of the agent.
            self.get(id).await?;
        }
        Ok(turns)
    }

    /// One page of the agent's turns as lists show them: at most `limits.list_agents` and about `limits.list_bytes`.
    /// Without `prompts`, the prompts are left out.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn list_turns(
        &self,
        id: AgentId,
        mut range: TurnRange,
        prompts: bool,
    ) -> Result<ListPage<ListedTurn>, Refusal> {
        range.limit = range.limit.min(self.core.limits.list_agents);
        let bounds = self.core.limits.list();
        let bounds = if prompts { bounds } else { ListBounds { field_bytes: 0, ..bounds } };
        let page = self.core.outside.agents.list_turns(id, range, bounds).await?;
        if page.items.is_empty() {
            self.get(id).await?;
        }
        Ok(page)
    }

    /// Turns of all agents that are not deleted, without their prompts, newest first; at most `limits.list_agents` at
    /// once.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn all_turns(&self, mut filter: TurnFilter) -> Result<ListPage<ListedTurn>, Refusal> {
        filter.limit = filter.limit.min(self.core.limits.list_agents);
        let bounds = ListBounds { field_bytes: 0, ..self.core.limits.list() };
        Ok(self.core.outside.agents.all_turns(filter, bounds).await?)
    }

    /// One turn; none where the agent has no such turn.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn turn(&self, id: AgentId, number: TurnNumber) -> Result<Option<Turn>, Refusal> {
        let Some(before) = number.0.checked_sub(1) else { return Ok(None) };
        let turns = self.turns(id, TurnNumber(before), 1).await?;
        Ok(turns.into_iter().find(|turn| turn.number == number))
    }

    /// The turn to which an event belongs; none where there is no such event.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn turn_at(&self, id: AgentId, sequence: Sequence) -> Result<Option<Turn>, Refusal> {
        Ok(self.core.outside.agents.turn_at(id, sequence).await?)
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
