//! The table `heads`: where each journal stands, and the lock of all that changes one agent.

use futures_util::future::join;
use tokenrail_domain::{AgentId, Timestamp, TurnNumber};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::{JournalState, TurnPhase};

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, epoch_of, int, parsed, sequence_of, status_of, turn_of};

/// Locks the row. What the other tables say is read afterwards, by another statement: this one would show what they
/// said before it waited.
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
    WHERE agent = (SELECT key FROM agents WHERE id = $1) AND number = $2";

/// A command may have waited while newer events were saved, and the clocks of two nodes may differ.
const TOUCH: &str = "UPDATE heads SET updated_at = greatest(updated_at, $2) WHERE agent = $1";

/// A trigger notes when.
const TOUCH_AGENT: &str = "UPDATE agents SET touched = 0 WHERE key = $1";

/// The statements of [`lock_place`].
pub(crate) const OF_A_PLACE: [&str; 3] = [LOCK, PLACE, TURN_STATE];

/// The agent's key in the database, and what the rules ask about its journal.
pub(crate) struct Journal {
    pub(crate) agent: i64,
    pub(crate) state: JournalState,
    /// How far the turn has come that was asked about. `None` if there is no such turn.
    pub(crate) phase: Option<TurnPhase>,
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

/// Locks the agent, and returns where its journal stands: in one round trip, if the statements are prepared.
pub(crate) async fn lock_place(db: &Link, id: AgentId, turn: TurnNumber) -> Result<Journal, QueryFailure> {
    let (locked, place) = join(lock(db, id), place(db, id, turn)).await;
    locked?.ok_or(StoreError::UnknownAgent(id))?;
    place
}

/// Where the journal stands. The agent is locked.
pub(crate) async fn place(db: &Link, id: AgentId, turn: TurnNumber) -> Result<Journal, QueryFailure> {
    let uuid = id.as_uuid();
    let number = int(turn.0);
    let (row, turn) = join(db.row(PLACE, &[&uuid]), db.row(TURN_STATE, &[&uuid, &number])).await;
    let row = row?.ok_or(StoreError::UnknownAgent(id))?;
    let state = JournalState {
        status: status_of(&row, 1)?,
        head: sequence_of(&row, 2)?,
        turn: turn_of(&row, 3)?,
        running: column(&row, 4)?,
        epoch: epoch_of(&row, 5)?,
    };
    let phase = turn?.map(|row| parsed(&row, 0, phase_of)).transpose()?;
    Ok(Journal { agent: column(&row, 0)?, state, phase })
}

fn phase_of(state: &str) -> Option<TurnPhase> {
    match state {
        "queued" => Some(TurnPhase::Queued),
        "running" => Some(TurnPhase::Running),
        "ended" => Some(TurnPhase::Ended),
        _ => None,
    }
}

/// Notes that the agent did something.
pub(crate) async fn touch(db: &Link, agent: i64, at: Timestamp) -> Result<(), QueryFailure> {
    db.run(TOUCH, &[&agent, &at.0]).await?;
    Ok(())
}

/// Notes that the agent's row or its turns have changed.
pub(crate) async fn touch_agent(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(TOUCH_AGENT, &[&agent]).await?;
    Ok(())
}
