//! The table `heads`: where each journal stands, and the lock of all that changes one agent.

use tokenrail_domain::{AgentId, Timestamp, TurnNumber};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::{JournalState, TurnPhase};

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, int, sequence_of, status_of, turn_of};

/// Locks the row. What the other tables say is read afterwards, by another statement: this one would show what they said
/// before it waited.
const LOCK: &str = "
    SELECT agent
    FROM heads
    WHERE agent = (SELECT key FROM agents WHERE id = $1)
    FOR UPDATE";

const PLACE: &str = "
    SELECT agents.key, agents.status, heads.head, heads.turn, heads.running, heads.epoch
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = $1";

const TURN_STATE: &str = "
    SELECT state
    FROM turns
    WHERE agent = $1 AND number = $2";

const TOUCH: &str = "UPDATE heads SET updated_at = $2 WHERE agent = $1";

/// The statements that each append needs.
pub(crate) const OF_AN_APPEND: [&str; 3] = [LOCK, PLACE, TURN_STATE];

/// The agent's key in the database, and what the rules ask about its journal.
pub(crate) struct Journal {
    pub(crate) agent: i64,
    pub(crate) state: JournalState,
}

/// Locks the agent until the end of the transaction, and returns its key. `None` if it is unknown or purged.
pub(crate) async fn lock(db: &Link, id: AgentId) -> Result<Option<i64>, QueryFailure> {
    match db.row(LOCK, &[&id.as_uuid()]).await? {
        Some(row) => Ok(Some(column(&row, 0)?)),
        None => Ok(None),
    }
}

/// Like [`lock`], for commands that need the agent.
pub(crate) async fn lock_known(db: &Link, id: AgentId) -> Result<i64, QueryFailure> {
    Ok(lock(db, id).await?.ok_or(StoreError::UnknownAgent(id))?)
}

/// Where the journal stands. The agent is locked.
pub(crate) async fn place(db: &Link, id: AgentId) -> Result<Journal, QueryFailure> {
    let row = db.row(PLACE, &[&id.as_uuid()]).await?.ok_or(StoreError::UnknownAgent(id))?;
    let state = JournalState {
        status: status_of(&row, 1)?,
        head: sequence_of(&row, 2)?,
        turn: turn_of(&row, 3)?,
        running: column(&row, 4)?,
    };
    Ok(Journal { agent: column(&row, 0)?, state })
}

/// How far a turn has come. `None` if there is no such turn.
pub(crate) async fn phase_of(
    db: &Link,
    agent: i64,
    turn: TurnNumber,
) -> Result<Option<TurnPhase>, QueryFailure> {
    let Some(row) = db.row(TURN_STATE, &[&agent, &int(turn.0)]).await? else { return Ok(None) };
    Ok(Some(match column(&row, 0)? {
        "queued" => TurnPhase::Queued,
        "running" => TurnPhase::Running,
        _ => TurnPhase::Ended,
    }))
}

/// Notes that the agent did something.
pub(crate) async fn touch(db: &Link, agent: i64, at: Timestamp) -> Result<(), QueryFailure> {
    db.run(TOUCH, &[&agent, &at.0]).await?;
    Ok(())
}
