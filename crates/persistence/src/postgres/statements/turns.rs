//! The table `turns`, read.

use tokenrail_domain::{
    AgentId, CommitId, ListedTurn, Sequence, StopReason, Turn, TurnNumber, TurnOutcome, TurnState,
};
use tokenrail_ports::{ListBounds, ListPage, StoreError, TurnFilter, TurnLimit, TurnRange};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{
    agent_id_of, beginning_of, column, int, maybe_parsed, maybe_sequence, maybe_text, maybe_time, parsed,
    time_of, turn_of,
};
use crate::postgres::statements::list_page::{list_page, one_more};
use crate::postgres::statements::prompt_images;
use crate::selects::{open_state, select_turn};

/// Turns of one agent.
macro_rules! turns {
    ($which:literal) => {
        concat!(select_turn!("turns.prompt"), "agents.id = $1 AND ", $which)
    };
}

/// Turns as shown in lists: of a prompt only the first `$1` bytes, which may end within a character.
const LISTED: &str = select_turn!("substr(turns.prompt, 1, $1::int)");

const OPEN: &str = turns!("turns.state <> 'ended' ORDER BY turns.state = 'queued', turns.number");

/// At most `$3` turns, and no further one after `$4` bytes of prompts.
const AFTER: &str = turns!(
    "turns.number IN (
        SELECT number
        FROM (
            SELECT number, sum(octet_length(prompt)) OVER (ORDER BY number) - octet_length(prompt) AS bytes_before
            FROM turns
            WHERE agent = (SELECT key FROM agents WHERE id = $1) AND number > $2
            ORDER BY number
            LIMIT $3
        ) AS found
        WHERE bytes_before <= $4
    )
    ORDER BY turns.number"
);

/// Turns do not overlap: an event belongs to the last turn that began at or before it.
const AT: &str = turns!(
    "turns.first_sequence <= $2 AND $2 <= heads.head
    ORDER BY turns.first_sequence DESC LIMIT 1"
);

const LAST: &str = "SELECT coalesce(max(number), 0) FROM turns WHERE agent = $1";

/// The running turn and the queued ones.
pub(crate) async fn open(db: &Link, id: AgentId) -> Result<Vec<Turn>, QueryFailure> {
    let rows = db.rows(OPEN, &[&id.as_uuid()]).await?;
    Ok(rows.iter().map(|row| turn_row(row, id)).collect::<Result<_, _>>()?)
}

/// Complete turns of any state, by number.
pub(crate) async fn after(
    db: &Link,
    id: AgentId,
    after: TurnNumber,
    limit: TurnLimit,
) -> Result<Vec<Turn>, QueryFailure> {
    let TurnLimit { turns, bytes } = limit;
    let (rows, most) =
        (i64::try_from(turns.max(1)).unwrap_or(i64::MAX), i64::try_from(bytes).unwrap_or(i64::MAX));
    let found = db.rows(AFTER, &[&id.as_uuid(), &int(after.0), &rows, &most]).await?;
    let found = found.iter().map(|row| turn_row(row, id));
    Ok(ListPage::of(found, (turns, bytes), |turn| turn.prompt.len())?.items)
}

/// Turns of any state, as shown in lists.
pub(crate) async fn list(
    db: &Link,
    id: AgentId,
    range: &TurnRange,
    bounds: ListBounds,
) -> Result<ListPage<ListedTurn>, QueryFailure> {
    let TurnRange { after, before, with_base, newest_first, limit } = *range;
    let based = if with_base { "AND turns.base_commit IS NOT NULL" } else { "" };
    let order = if newest_first { "DESC" } else { "ASC" };
    let which = format!(
        "agents.id = $2 AND turns.number > $3 AND ($4::int IS NULL OR turns.number < $4) {based}
        ORDER BY turns.number {order} LIMIT $5"
    );
    let before = before.map(|before| int(before.0));
    let values: [&(dyn ToSql + Sync); 4] = [&id.as_uuid(), &int(after.0), &before, &one_more(limit)];
    listed(db, &which, &values, (limit, bounds)).await
}

async fn listed(
    db: &Link,
    which: &str,
    values: &[&(dyn ToSql + Sync)],
    bounds: (usize, ListBounds),
) -> Result<ListPage<ListedTurn>, QueryFailure> {
    list_page(db, &format!("{LISTED} {which}"), values, bounds, listed_row, ListedTurn::bytes).await
}

/// Turns of all agents that are not deleted, in the order in which they were saved: that of their keys.
pub(crate) async fn all(
    db: &Link,
    filter: &TurnFilter,
    bounds: ListBounds,
) -> Result<ListPage<ListedTurn>, QueryFailure> {
    let TurnFilter { agents, open, behind, oldest_first, limit } = filter;
    let ids: Option<Vec<Uuid>> = (!agents.is_empty()).then(|| agents.iter().map(|id| id.as_uuid()).collect());
    let some = if ids.is_some() { "AND agents.id = ANY ($2)" } else { "AND $2::uuid[] IS NULL" };
    let open = if *open { "AND turns.state <> 'ended'" } else { "" };
    let (order, after) = if *oldest_first { ("ASC", '>') } else { ("DESC", '<') };
    let which = format!(
        "agents.deleted_at IS NULL {some} {open}
        AND ($3::uuid IS NULL OR turns.key {after} (
            SELECT before.key
            FROM turns AS before
            JOIN agents AS of ON of.key = before.agent
            WHERE of.id = $3 AND before.number = $4
        ))
        ORDER BY turns.key {order} LIMIT $5"
    );
    let number = behind.map_or(0, |(_, number)| int(number.0));
    let values: [&(dyn ToSql + Sync); 4] =
        [&ids, &behind.map(|(agent, _)| agent.as_uuid()), &number, &one_more(*limit)];
    listed(db, &which, &values, (*limit, bounds)).await
}

/// The turn of an event.
pub(crate) async fn at(db: &Link, id: AgentId, sequence: Sequence) -> Result<Option<Turn>, QueryFailure> {
    let sequence = i64::try_from(sequence.0).unwrap_or(i64::MAX);
    let row = db.row(AT, &[&id.as_uuid(), &sequence]).await?;
    Ok(row.map(|row| turn_row(&row, id)).transpose()?)
}

/// The highest number of any turn.
pub(crate) async fn last(db: &Link, agent: i64) -> Result<TurnNumber, QueryFailure> {
    match db.row(LAST, &[&agent]).await? {
        Some(row) => Ok(turn_of(&row, 0)?),
        None => Ok(TurnNumber(0)),
    }
}

fn listed_row(row: &Row, prompt_bytes: i32) -> Result<ListedTurn, StoreError> {
    Ok(ListedTurn {
        turn: turn_row(row, agent_id_of(row, 12)?)?,
        truncated: prompt_bytes < column(row, 13)?,
        ended_at: maybe_time(row, 14)?,
        stop_reason: maybe_text(row, 15)?,
    })
}

fn turn_row(row: &Row, agent: AgentId) -> Result<Turn, StoreError> {
    Ok(Turn {
        agent,
        number: turn_of(row, 0)?,
        run: turn_of(row, 1)?,
        prompt: beginning_of(row, 2)?.unwrap_or_default(),
        images: prompt_images::summaries(row, 11)?,
        state: match maybe_parsed(row, 4, TurnOutcome::from_name)? {
            Some(outcome) => TurnState::Ended(outcome),
            None => parsed(row, 3, open_state)?,
        },
        asked_at: time_of(row, 5)?,
        first_sequence: maybe_sequence(row, 6)?,
        last_sequence: maybe_sequence(row, 7)?,
        spool_offset: column::<i64>(row, 8)? as u64,
        stop: maybe_parsed(row, 9, StopReason::from_name)?,
        base: maybe_parsed(row, 10, CommitId::new)?,
    })
}
