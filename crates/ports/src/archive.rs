//! Histories as a whole: taken in from outside, or written anew.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentId, Event, Turn};

use crate::StoreError;

/// Takes in the history of an agent that has ended, piece by piece, and writes stored events anew. What runs is
/// written by [`IJournal`](crate::IJournal) alone.
///
/// An agent that is being taken in is deleted and marked to be purged until all of it is there: what a server that
/// dies meanwhile leaves of it, the next one removes.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IArchive: Send + Sync {
    /// Begins to take in an agent, without turns and events.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where its id was ever used.
    async fn begin_import(&self, agent: Agent) -> Result<(), StoreError>;

    /// Adds turns; all of them have ended. Before the events that belong to them.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where a number is taken, or the agent is not being taken in.
    async fn import_turns(&self, agent: AgentId, turns: Vec<Turn>) -> Result<(), StoreError>;

    /// Adds consecutive events of one turn. The very same events again change nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where they do not follow the newest one, or the agent is not being taken in.
    async fn import_events(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError>;

    /// All of it is there: the agent is shown as it is given, neither deleted nor marked.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where its head is not the newest event, or it is not being taken in.
    async fn finish_import(&self, agent: Agent) -> Result<(), StoreError>;

    /// Removes what there is of an agent that is being taken in, as if it had never come. Of any other agent, and of
    /// none, nothing is removed.
    async fn discard_import(&self, agent: AgentId) -> Result<(), StoreError>;

    /// Writes consecutive events of one ended turn anew, under their numbers; the rest stays as it is. Where they
    /// end the agent's newest turn, the agent's row follows its result.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where the turn has not ended, an event is of another turn than the stored one, or
    /// an event would become what it is not: a delta a message, a result no result, or one of another outcome.
    async fn rewrite(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError>;
}
