//! Purges: the removal of everything that an agent has.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, Timestamp};

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::errands::leave_files;
use crate::postgres::statements::heads::lock;

const REMOVE_JOURNAL: &str = "DELETE FROM journal WHERE agent = $1";

const REMOVE_MESSAGES: &str = "DELETE FROM agent_messages WHERE agent = $1";

/// Batches and messages that one step of a purge removes, at most.
const PURGE_STEP: i64 = 1000;

const REMOVE_NEWEST_BATCHES: &str = "
    DELETE FROM journal
    WHERE agent = $1
        AND first_seq IN (SELECT first_seq FROM journal WHERE agent = $1 ORDER BY first_seq DESC LIMIT $2)";

const REMOVE_NEWEST_MESSAGES: &str = "
    DELETE FROM agent_messages
    WHERE agent = $1
        AND sequence_number IN (
            SELECT sequence_number FROM agent_messages WHERE agent = $1 ORDER BY sequence_number DESC LIMIT $2
        )";

const REMOVE: &str = "DELETE FROM agents WHERE key = $1";

const ADD_TOMBSTONE: &str = "INSERT INTO tombstones (id, purged_at) VALUES ($1, $2)";

/// Removes the newest of an agent's rows, so that no transaction is long, and what is left is a beginning. Returns
/// whether there were as many as one step removes.
pub(crate) struct PurgeStepCommand(pub(crate) AgentId);

impl ChangeCommand for PurgeStepCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some(agent) = lock(db, self.0).await? else { return Ok(false) };
        let batches = db.run(REMOVE_NEWEST_BATCHES, &[&agent, &PURGE_STEP]).await?;
        let messages = db.run(REMOVE_NEWEST_MESSAGES, &[&agent, &PURGE_STEP]).await?;
        Ok(batches.max(messages) == PURGE_STEP as u64)
    }
}

/// Removes an agent's rows.
pub(crate) struct PurgeCommand {
    pub(crate) node: i64,
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl ChangeCommand for PurgeCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some(agent) = lock(db, self.agent).await? else { return Ok(false) };
        leave_files(db, agent, self.node).await?;
        remove(db, agent).await?;
        db.run(ADD_TOMBSTONE, &[&self.agent.as_uuid(), &self.at.0]).await?;
        Ok(true)
    }

    fn kept(self, was_known: &bool, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        was_known.then(|| Arc::new(self) as Arc<dyn KeptChange>)
    }
}

#[async_trait]
impl KeptChange for PurgeCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        Ok(if self.run(db).await? { Redone::Again } else { Redone::There })
    }
}

/// Removes all rows of an agent. It is locked.
pub(crate) async fn remove(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    for statement in [REMOVE_JOURNAL, REMOVE_MESSAGES, REMOVE] {
        db.run(statement, &[&agent]).await?;
    }
    Ok(())
}
