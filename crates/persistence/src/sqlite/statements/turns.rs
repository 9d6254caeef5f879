//! The table `turns`, read.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params};
use tokenrail_domain::{
    AgentId, CommitId, ListedTurn, Sequence, StopReason, Timestamp, Turn, TurnNumber, TurnOutcome, TurnState,
};
use tokenrail_ports::{ListBounds, ListPage, StoreError, TurnFilter, TurnLimit, TurnRange};

use crate::selects::{open_state, select_turn};
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{agent_id_of, maybe, parsed, text_of, turn_of, unsigned};
use crate::sqlite::statements::list_page::list_page;
use crate::sqlite::statements::prompt_images;

/// Turns of one agent.
macro_rules! turns {
    ($which:literal) => {
        concat!(select_turn!("turns.prompt"), "agents.id = :id AND ", $which)
    };
}

/// Turns as shown in lists: of a prompt only the first `?1` bytes, which may end within a character.
const LISTED: &str = select_turn!("substr(CAST(turns.prompt AS BLOB), 1, ?1)");

const OPEN: &str = turns!("turns.state <> 'ended' ORDER BY turns.state = 'queued', turns.number");

const AFTER: &str = turns!("turns.number > :after ORDER BY turns.number LIMIT :limit");

/// Turns do not overlap: an event belongs to the last turn that began at or before it.
const AT: &str = turns!(
    "turns.first_sequence <= :sequence AND :sequence <= heads.head
    ORDER BY turns.first_sequence DESC LIMIT 1"
);

const LAST: &str = "SELECT coalesce(max(number), 0) FROM turns WHERE agent = :agent";

/// The running turn and the queued ones.
pub(crate) fn open(db: &Connection, id: AgentId) -> Result<Vec<Turn>, StoreError> {
    let mut statement = db.prepare_cached(OPEN).map_err(store_error)?;
    let turns = statement
        .query_map(named_params! { ":id": id.to_string() }, |row| turn_row(row, id))
        .map_err(store_error)?;
    turns.collect::<Result<_, _>>().map_err(store_error)
}

/// Complete turns of any state, by number.
pub(crate) fn after(
    db: &Connection,
    id: AgentId,
    after: TurnNumber,
    limit: TurnLimit,
) -> Result<Vec<Turn>, StoreError> {
    let TurnLimit { turns, bytes } = limit;
    let rows = i64::try_from(turns).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(AFTER).map_err(store_error)?;
    let found = statement
        .query_map(named_params! { ":id": id.to_string(), ":after": after.0, ":limit": rows }, |row| {
            turn_row(row, id)
        })
        .map_err(store_error)?;
    let page = ListPage::of(found, (turns, bytes), |turn| turn.prompt.len()).map_err(store_error)?;
    Ok(page.items)
}

/// Turns of any state, as shown in lists.
pub(crate) fn list(
    db: &Connection,
    id: AgentId,
    range: &TurnRange,
    bounds: ListBounds,
) -> Result<ListPage<ListedTurn>, StoreError> {
    let TurnRange { after, before, with_base, newest_first, limit } = *range;
    let based = if with_base { "AND turns.base_commit IS NOT NULL" } else { "" };
    let order = if newest_first { "DESC" } else { "ASC" };
    let which = format!(
        "agents.id = ?2 AND turns.number > ?3 AND (?4 IS NULL OR turns.number < ?4) {based}
        ORDER BY turns.number {order} LIMIT ?5"
    );
    let (id, before) = (id.to_string(), before.map(|before| before.0));
    listed(db, &which, &[&id, &after.0, &before, &one_more(limit)], (limit, bounds))
}

/// One row more than requested shows whether there are more.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

fn listed(
    db: &Connection,
    which: &str,
    values: &[&dyn ToSql],
    bounds: (usize, ListBounds),
) -> Result<ListPage<ListedTurn>, StoreError> {
    list_page(db, &format!("{LISTED} {which}"), values, bounds, listed_row, ListedTurn::bytes)
}

/// Turns of all agents that are not deleted, in the order in which they were saved: that of their keys.
pub(crate) fn all(
    db: &Connection,
    filter: &TurnFilter,
    bounds: ListBounds,
) -> Result<ListPage<ListedTurn>, StoreError> {
    let limit = one_more(filter.limit);
    let ids: Vec<String> = filter.agents.iter().map(AgentId::to_string).collect();
    let behind = filter.behind.map(|(agent, number)| (agent.to_string(), number.0));
    let mut values: Vec<&dyn ToSql> = vec![&limit];
    values.extend(ids.iter().map(|id| id as &dyn ToSql));
    if let Some((agent, number)) = &behind {
        values.extend([agent as &dyn ToSql, number]);
    }
    listed(db, &all_in(filter), &values, (filter.limit, bounds))
}

/// SQLite runs a cross join in the order in which it is written. For all agents, it walks the turns by their keys no
/// further than to the limit, or the open ones by their own index. For some agents, it reads only their turns.
fn all_in(filter: &TurnFilter) -> String {
    let some = filter.agents.len();
    let joined = if some == 0 {
        let index = if filter.open { "INDEXED BY turns_open" } else { "" };
        format!(
            "turns AS found {index} CROSS JOIN agents AS of ON of.key = found.agent
            WHERE of.deleted_at IS NULL"
        )
    } else {
        let places: Vec<String> = (3..3 + some).map(|place| format!("?{place}")).collect();
        let places = places.join(", ");
        format!(
            "agents AS of CROSS JOIN turns AS found ON found.agent = of.key
            WHERE of.deleted_at IS NULL AND of.id IN ({places})"
        )
    };
    let open = if filter.open { "AND found.state <> 'ended'" } else { "" };
    let (order, after) = if filter.oldest_first { ("ASC", '>') } else { ("DESC", '<') };
    let behind = filter.behind.map_or_else(String::new, |_| {
        let (agent, number) = (3 + some, 4 + some);
        format!(
            "AND found.key {after} (SELECT turns.key FROM turns JOIN agents ON agents.key = turns.agent
                WHERE agents.id = ?{agent} AND turns.number = ?{number})"
        )
    });
    format!(
        "turns.key IN (SELECT found.key FROM {joined} {open} {behind} ORDER BY found.key {order} LIMIT ?2)
        ORDER BY turns.key {order}"
    )
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

fn listed_row(row: &Row<'_>, prompt_bytes: i64) -> rusqlite::Result<ListedTurn> {
    Ok(ListedTurn {
        turn: turn_row(row, agent_id_of(row, 12)?)?,
        truncated: prompt_bytes < row.get(13)?,
        ended_at: maybe(row, 14)?.map(Timestamp),
        stop_reason: row.get(15)?,
    })
}

fn turn_row(row: &Row<'_>, agent: AgentId) -> rusqlite::Result<Turn> {
    let outcome = maybe::<String>(row, 4)?.map(|_| parsed(row, 4, TurnOutcome::from_name)).transpose()?;
    Ok(Turn {
        agent,
        number: turn_of(row, 0)?,
        run: turn_of(row, 1)?,
        prompt: text_of(row, 2)?.unwrap_or_default(),
        images: prompt_images::summaries(row, 11)?,
        state: match outcome {
            Some(outcome) => TurnState::Ended(outcome),
            None => parsed(row, 3, open_state)?,
        },
        asked_at: Timestamp(row.get(5)?),
        first_sequence: maybe::<i64>(row, 6)?.map(|first| Sequence(first as u64)),
        last_sequence: maybe::<i64>(row, 7)?.map(|last| Sequence(last as u64)),
        spool_offset: unsigned(row, 8)?,
        stop: maybe::<String>(row, 9)?.map(|_| parsed(row, 9, StopReason::from_name)).transpose()?,
        base: maybe::<String>(row, 10)?.map(|_| parsed(row, 10, CommitId::new)).transpose()?,
    })
}
