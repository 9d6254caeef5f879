//! Whole histories: imported from outside, or rewritten.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentId, Event};

use crate::{NewTurn, StoreError};

/// Imports the history of an agent that has ended, piece by piece, and rewrites stored events. Only
/// [`IJournal`](crate::IJournal) writes the events of running turns.
///
/// An agent that is being imported is marked as deleted and to be purged until the import is complete. If the server
/// dies during the import, the next start removes what was stored.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait IArchive: Send + Sync {
    /// Starts the import of an agent, without turns and events.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the agent's id was ever used.
    async fn begin_import(&self, agent: Agent) -> Result<(), StoreError>;

    /// Adds turns with their images. All of them have ended. Must be called before the events of these turns are
    /// imported.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a turn number is taken, a turn has not ended, or the agent is not being imported.
    async fn import_turns(&self, agent: AgentId, turns: Vec<NewTurn>) -> Result<(), StoreError>;

    /// Adds consecutive events of one turn. Adding identical events again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if they do not follow the newest event, or the agent is not being imported.
    async fn import_events(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError>;

    /// Completes the import. From then on the agent is visible as given here, neither deleted nor marked to be purged.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if its head is not the newest event, its status is an active one, or it is not being
    /// imported.
    async fn finish_import(&self, agent: Agent) -> Result<(), StoreError>;

    /// Removes everything that is stored of an agent that is being imported, as if its import had never started. An
    /// agent that is not being imported stays untouched.
    async fn discard_import(&self, agent: AgentId) -> Result<(), StoreError>;

    /// Rewrites consecutive events of one ended turn under their existing numbers. All other events stay the same. If
    /// the last of them is the agent's newest event and the agent has ended, the error, usage and cost of the agent are
    /// taken from that result.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the turn has not ended, or if a new event cannot replace the stored one: see
    /// [`rules::may_replace`](crate::rules::may_replace).
    async fn rewrite(&self, agent: AgentId, events: Arc<[Event]>) -> Result<(), StoreError>;
}
