//! The table `turns`, read.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tokenrail_domain::{AgentId, Sequence, StopReason, Timestamp, Turn, TurnNumber, TurnOutcome, TurnState};
use tokenrail_ports::StoreError;

use crate::columns::{maybe, parsed, turn_of, unsigned};
use crate::error::store_error;

/// The columns that [`turn_row`] reads, in its order.
macro_rules! turns {
    ($which:literal) => {
        concat!(
            "
    SELECT turns.number, turns.run, turns.prompt, turns.state, turns.outcome, turns.asked_at,
        turns.first_sequence, turns.last_sequence,
        CASE turns.state WHEN 'running' THEN heads.spool_offset ELSE turns.spool_offset END, turns.stop
    FROM turns
    JOIN agents ON agents.key = turns.agent
    JOIN heads ON heads.agent = turns.agent
    WHERE agents.id = :id AND ",
            $which
        )
    };
}

const OPEN: &str = turns!("turns.state <> 'ended' ORDER BY turns.state = 'queued', turns.number");

const AFTER: &str = turns!("turns.number > :after ORDER BY turns.number LIMIT :limit");

/// Turns do not overlap: the one that began last before an event has it.
const AT: &str = turns!(
    "turns.first_sequence <= :sequence AND :sequence <= heads.head
    ORDER BY turns.first_sequence DESC LIMIT 1"
);

const LAST: &str = "SELECT coalesce(max(number), 0) FROM turns WHERE agent = :agent";

/// The turn that runs and those that wait.
pub(crate) fn open(db: &Connection, id: AgentId) -> Result<Vec<Turn>, StoreError> {
    let mut statement = db.prepare_cached(OPEN).map_err(store_error)?;
    let turns = statement
        .query_map(named_params! { ":id": id.to_string() }, |row| turn_row(row, id))
        .map_err(store_error)?;
    turns.collect::<Result<_, _>>().map_err(store_error)
}

/// Turns of any state, by number.
pub(crate) fn list(
    db: &Connection,
    id: AgentId,
    after: TurnNumber,
    limit: usize,
) -> Result<Vec<Turn>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(AFTER).map_err(store_error)?;
    let turns = statement
        .query_map(named_params! { ":id": id.to_string(), ":after": after.0, ":limit": limit }, |row| {
            turn_row(row, id)
        })
        .map_err(store_error)?;
    turns.collect::<Result<_, _>>().map_err(store_error)
}

/// The turn of an event.
pub(crate) fn at(db: &Connection, id: AgentId, sequence: Sequence) -> Result<Option<Turn>, StoreError> {
    let sequence = i64::try_from(sequence.0).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(AT).map_err(store_error)?;
    statement
        .query_row(named_params! { ":id": id.to_string(), ":sequence": sequence }, |row| turn_row(row, id))
        .optional()
        .map_err(store_error)
}

/// The highest number of any turn.
pub(crate) fn last(db: &Connection, agent: i64) -> Result<TurnNumber, StoreError> {
    let mut statement = db.prepare_cached(LAST).map_err(store_error)?;
    statement.query_row(named_params! { ":agent": agent }, |row| turn_of(row, 0)).map_err(store_error)
}

fn turn_row(row: &Row<'_>, agent: AgentId) -> rusqlite::Result<Turn> {
    let outcome = maybe::<String>(row, 4)?.map(|_| parsed(row, 4, TurnOutcome::from_name)).transpose()?;
    let open_state = |name: &str| match name {
        "queued" => Some(TurnState::Queued),
        "running" => Some(TurnState::Running),
        _ => None,
    };
    Ok(Turn {
        agent,
        number: turn_of(row, 0)?,
        run: turn_of(row, 1)?,
        prompt: row.get(2)?,
        state: match outcome {
            Some(outcome) => TurnState::Ended(outcome),
            None => parsed(row, 3, open_state)?,
        },
        asked_at: Timestamp(row.get(5)?),
        first_sequence: maybe::<i64>(row, 6)?.map(|first| Sequence(first as u64)),
        last_sequence: maybe::<i64>(row, 7)?.map(|last| Sequence(last as u64)),
        spool_offset: unsigned(row, 8)?,
        stop: maybe::<String>(row, 9)?.map(|_| parsed(row, 9, StopReason::from_name)).transpose()?,
    })
}
