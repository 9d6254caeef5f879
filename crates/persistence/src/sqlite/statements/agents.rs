//! The table `agents`, read.

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params_from_iter};
use tokenrail_domain::{
    Agent, AgentError, AgentId, Copied, ErrorClass, LaunchedBy, ListedAgent, Replay, Timestamp,
};
use tokenrail_ports::{AgentFilter, ListBounds, ListPage, Standing, StoreError};

use crate::selects::{LONG_FIELDS, as_it_is, lengths_of_agent, select_agent};
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{
    agent_id_of, json_of, maybe, parsed, sequence_of, status_of, text_of, turn_of,
};
use crate::sqlite::statements::list_page::list_page;

/// The first `?1` bytes, which may end within a character. See [`text_of`].
macro_rules! beginning {
    ($column:literal) => {
        concat!("substr(CAST(", $column, " AS BLOB), 1, ?1)")
    };
}

macro_rules! short {
    ($column:literal) => {
        concat!("CASE WHEN octet_length(", $column, ") <= ?1 THEN ", $column, " END")
    };
}

const AGENT: &str = select_agent!(as_it_is, as_it_is, "");

/// An agent as shown in a list: no field has more bytes than `?1`. The lengths of [`LONG_FIELDS`] follow.
const LISTED: &str = select_agent!(beginning, short, lengths_of_agent!());

/// The first column after those of the agent.
const LENGTHS: usize = 34;

const STANDING: &str = "
    SELECT heads.head, EXISTS (SELECT 1 FROM turns WHERE turns.agent = agents.key AND turns.state <> 'ended'),
        agents.deleted_at IS NOT NULL
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = ?1";

const TO_PURGE: &str = "SELECT id FROM agents WHERE to_purge = 1 ORDER BY id";

pub(crate) fn get(db: &Connection, id: AgentId) -> Result<Option<Agent>, StoreError> {
    Ok(select(db, "WHERE agents.id = ?1", &[&id.to_string()])?.pop())
}

/// How far these agents are.
pub(crate) fn standings(db: &Connection, agents: &[AgentId]) -> Result<Vec<Standing>, StoreError> {
    let mut statement = db.prepare_cached(STANDING).map_err(store_error)?;
    let mut standings = Vec::new();
    for &agent in agents {
        let read = |row: &Row<'_>| {
            Ok(Standing { agent, head: sequence_of(row, 0)?, open: row.get(1)?, deleted: row.get(2)? })
        };
        standings.extend(statement.query_row([agent.to_string()], read).optional().map_err(store_error)?);
    }
    Ok(standings)
}

/// Every agent that has a queued or running turn, oldest first.
pub(crate) fn with_open_turns(db: &Connection, field_bytes: usize) -> Result<Vec<ListedAgent>, StoreError> {
    let which = "
        WHERE agents.key IN (SELECT agent FROM turns WHERE state <> 'ended')
        ORDER BY agents.id";
    let bounds = ListBounds { bytes: usize::MAX, field_bytes };
    Ok(listed(db, which, &[], (usize::MAX, bounds))?.items)
}

/// Every agent that is marked to be purged.
pub(crate) fn to_purge(db: &Connection) -> Result<Vec<AgentId>, StoreError> {
    let mut statement = db.prepare_cached(TO_PURGE).map_err(store_error)?;
    let agents = statement.query_map([], |row| agent_id_of(row, 0)).map_err(store_error)?;
    agents.collect::<Result<_, _>>().map_err(store_error)
}

pub(crate) fn list(
    db: &Connection,
    filter: &AgentFilter,
    bounds: ListBounds,
) -> Result<ListPage<ListedAgent>, StoreError> {
    let (before, after) = (filter.before.map(|id| id.to_string()), filter.after.map(|id| id.to_string()));
    // One row more than requested shows whether there are more.
    let rows = i64::try_from(filter.limit).unwrap_or(i64::MAX).saturating_add(1);
    let words: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let mut values: Vec<&dyn ToSql> =
        vec![&filter.deleted, &filter.kind, &filter.name, &before, &after, &rows];
    values.extend(words.iter().map(|word| word as &dyn ToSql));
    let status = if words.is_empty() {
        String::new()
    } else {
        let places: Vec<String> = (8..8 + words.len()).map(|place| format!("?{place}")).collect();
        format!("AND agents.status IN ({})", places.join(", "))
    };
    // Without a parent there is no condition, so that SQLite can use the index of the children with one.
    let launched_by = filter.launched_by.map(|id| id.to_string());
    let parent = match &launched_by {
        Some(id) => {
            values.push(id);
            format!("AND agents.launched_by = ?{}", values.len() + 1)
        }
        None => String::new(),
    };
    // A literal, and not a parameter, so that SQLite can use the index of the pinned agents.
    let pinned = if filter.pinned { "AND agents.pinned = 1" } else { "" };
    let archived = match filter.archived.wanted() {
        None => "",
        Some(false) => "AND agents.archived = 0",
        Some(true) => "AND agents.archived = 1",
    };
    let order = if filter.oldest_first { "ASC" } else { "DESC" };
    // An id begins with the time of launch.
    let which = format!(
        "WHERE (agents.deleted_at IS NOT NULL) = ?2
          AND (?3 IS NULL OR agents.type = ?3)
          AND (?4 IS NULL OR agents.name = ?4)
          AND (?5 IS NULL OR agents.id < ?5)
          AND (?6 IS NULL OR ?6 < agents.id)
          {pinned} {archived} {status} {parent}
        ORDER BY agents.id {order}
        LIMIT ?7"
    );
    listed(db, &which, &values, (filter.limit, bounds))
}

/// The agent of a client's conversation.
pub(crate) fn by_chat(db: &Connection, chat: &str) -> Result<Option<Agent>, StoreError> {
    Ok(select(db, "WHERE agents.chat = ?1 AND agents.deleted_at IS NULL", &[&chat])?.pop())
}

fn select(db: &Connection, which: &str, values: &[&dyn ToSql]) -> Result<Vec<Agent>, StoreError> {
    let mut statement = db.prepare_cached(&format!("{AGENT} {which}")).map_err(store_error)?;
    let agents = statement.query_map(params_from_iter(values), agent_of).map_err(store_error)?;
    agents.collect::<Result<_, _>>().map_err(store_error)
}

/// A page of agents as shown in a list.
fn listed(
    db: &Connection,
    which: &str,
    values: &[&dyn ToSql],
    bounds: (usize, ListBounds),
) -> Result<ListPage<ListedAgent>, StoreError> {
    list_page(db, &format!("{LISTED} {which}"), values, bounds, listed_row, ListedAgent::bytes)
}

fn listed_row(row: &Row<'_>, field_bytes: i64) -> rusqlite::Result<ListedAgent> {
    let mut truncated = Vec::new();
    for (at, field) in (LENGTHS..).zip(LONG_FIELDS) {
        if maybe::<i64>(row, at)?.is_some_and(|bytes| field_bytes < bytes) {
            truncated.push(field);
        }
    }
    Ok(ListedAgent { agent: agent_of(row)?, truncated })
}

fn agent_of(row: &Row<'_>) -> rusqlite::Result<Agent> {
    Ok(Agent {
        id: agent_id_of(row, 0)?,
        kind: row.get(1)?,
        name: text_of(row, 2)?,
        status: status_of(row, 3)?,
        prompt: text_of(row, 4)?.unwrap_or_default(),
        model: text_of(row, 5)?,
        cwd: text_of(row, 6)?.unwrap_or_default(),
        session: row.get(7)?,
        turn: turn_of(row, 8)?,
        head: sequence_of(row, 9)?,
        created_at: Timestamp(row.get(10)?),
        updated_at: Timestamp(row.get(11)?),
        ended_at: maybe(row, 12)?.map(Timestamp),
        deleted_at: maybe(row, 13)?.map(Timestamp),
        error: error_of(row)?,
        usage: json_of(row, 19)?,
        cost_usd: row.get(20)?,
        metadata: json_of(row, 21)?,
        options: json_of(row, 22)?,
        cancel_on_disconnect: row.get(23)?,
        queued: row.get(24)?,
        chat: row.get(25)?,
        home: None,
        copy: copy_of(row)?,
        pinned: row.get(30)?,
        archived: row.get(31)?,
        launched_by: launched_by_of(row)?,
    })
}

fn copy_of(row: &Row<'_>) -> rusqlite::Result<Option<Copied>> {
    Ok(match maybe::<String>(row, 26)?.as_deref() {
        None => None,
        Some("file") => Some(Copied::File),
        Some(_) => Some(Copied::Replay(Replay {
            of: agent_id_of(row, 27)?,
            until: sequence_of(row, 28)?,
            speed: row.get(29)?,
        })),
    })
}

fn launched_by_of(row: &Row<'_>) -> rusqlite::Result<Option<LaunchedBy>> {
    Ok(match maybe(row, 33)? {
        Some(depth) => Some(LaunchedBy { agent: agent_id_of(row, 32)?, depth }),
        None => None,
    })
}

fn error_of(row: &Row<'_>) -> rusqlite::Result<Option<AgentError>> {
    if maybe::<String>(row, 14)?.is_none() {
        return Ok(None);
    }
    Ok(Some(AgentError {
        class: parsed(row, 14, ErrorClass::from_name)?,
        code: row.get(15)?,
        text: text_of(row, 16)?.unwrap_or_default(),
        retry_after_ms: maybe::<i64>(row, 17)?.map(|ms| ms as u64),
        recoverable: row.get(18)?,
    }))
}
