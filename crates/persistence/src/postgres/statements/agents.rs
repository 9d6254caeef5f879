//! The table `agents`, read.

use tokenrail_domain::{
    Agent, AgentError, AgentId, Copied, ErrorClass, LaunchedBy, ListedAgent, NodeId, Replay,
};
use tokenrail_ports::{AgentFilter, ListBounds, ListPage, Standing, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{
    agent_id_of, beginning_of, bytes_of, column, json_of, maybe_parsed, maybe_text, maybe_time, sequence_of,
    status_of, text_of, time_of, turn_of,
};
use crate::postgres::statements::list_page::{list_page, one_more};
use crate::selects::{LONG_FIELDS, as_it_is, lengths_of_agent, select_agent};

/// The first `$1` bytes, which may end within a character. See [`beginning_of`].
macro_rules! beginning {
    ($column:literal) => {
        concat!("substr(", $column, ", 1, $1::int)")
    };
}

macro_rules! short {
    ($column:literal) => {
        concat!("CASE WHEN octet_length(", $column, ") <= $1::int THEN ", $column, " END")
    };
}

const AGENT: &str = select_agent!(as_it_is, as_it_is, ", agents.home");

/// An agent as shown in a list: no field has more bytes than `$1`. The lengths of [`LONG_FIELDS`] follow.
const LISTED: &str = select_agent!(beginning, short, concat!(", agents.home", lengths_of_agent!()));

/// The first column after those of the agent.
const LENGTHS: usize = 35;

const WITH_OPEN_TURNS: &str = "
    WHERE agents.key IN (SELECT agent FROM turns WHERE state <> 'ended')
        AND coalesce(heads.owner, agents.home, $2) = $2
    ORDER BY agents.id";

const IS_PURGED: &str = "SELECT EXISTS (SELECT FROM tombstones WHERE id = $1)";

const TO_PURGE: &str = "SELECT id FROM agents WHERE to_purge AND coalesce(home, $1) = $1 ORDER BY id";

const STANDINGS: &str = "
    SELECT agents.id, heads.head, EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended'),
        agents.deleted_at IS NOT NULL
    FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (id, place)
    JOIN agents ON agents.id = wanted.id
    JOIN heads ON heads.agent = agents.key
    ORDER BY wanted.place";

pub(crate) async fn get(db: &Link, id: AgentId) -> Result<Option<Agent>, QueryFailure> {
    one(db, "WHERE agents.id = $1", &[&id.as_uuid()]).await
}

/// The agent of a client's conversation.
pub(crate) async fn by_chat(db: &Link, chat: &str) -> Result<Option<Agent>, QueryFailure> {
    let which = "WHERE sha256(agents.chat) = sha256($1) AND agents.chat = $1 AND agents.chat IS NOT NULL
        AND agents.deleted_at IS NULL";
    one(db, which, &[&chat.as_bytes()]).await
}

async fn one(db: &Link, which: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Option<Agent>, QueryFailure> {
    let row = db.row(&format!("{AGENT} {which}"), values).await?;
    Ok(row.as_ref().map(agent_of).transpose()?)
}

/// How far these agents are.
pub(crate) async fn standings(db: &Link, wanted: &[AgentId]) -> Result<Vec<Standing>, QueryFailure> {
    let wanted: Vec<Uuid> = wanted.iter().map(|id| id.as_uuid()).collect();
    let rows = db.rows(STANDINGS, &[&wanted]).await?;
    let standing = |row: &Row| {
        let (agent, head) = (agent_id_of(row, 0)?, sequence_of(row, 1)?);
        Ok(Standing { agent, head, open: column(row, 2)?, deleted: column(row, 3)? })
    };
    Ok(rows.iter().map(standing).collect::<Result<_, StoreError>>()?)
}

/// Every agent of this node that has a queued or running turn, oldest first.
pub(crate) async fn with_open_turns(
    db: &Link,
    node: i64,
    field_bytes: usize,
) -> Result<Vec<ListedAgent>, QueryFailure> {
    let bounds = ListBounds { bytes: usize::MAX, field_bytes };
    Ok(listed(db, WITH_OPEN_TURNS, &[&node], (usize::MAX, bounds)).await?.items)
}

pub(crate) async fn is_purged(db: &Link, id: AgentId) -> Result<bool, QueryFailure> {
    let row = db.row(IS_PURGED, &[&id.as_uuid()]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Every agent of this node that is marked to be purged.
pub(crate) async fn to_purge(db: &Link, node: i64) -> Result<Vec<AgentId>, QueryFailure> {
    let rows = db.rows(TO_PURGE, &[&node]).await?;
    Ok(rows.iter().map(|row| agent_id_of(row, 0)).collect::<Result<_, _>>()?)
}

pub(crate) async fn list(
    db: &Link,
    filter: &AgentFilter,
    bounds: ListBounds,
) -> Result<ListPage<ListedAgent>, QueryFailure> {
    let AgentFilter {
        statuses,
        kind,
        name,
        before,
        after,
        oldest_first,
        deleted,
        pinned,
        archived,
        launched_by,
        limit,
    } = filter;
    let words: Option<Vec<&str>> =
        (!statuses.is_empty()).then(|| statuses.iter().map(|status| status.as_str()).collect());
    // A literal, and not a parameter, so that PostgreSQL can use the index of the pinned agents.
    let pinned = if *pinned { "AND agents.pinned" } else { "" };
    let order = if *oldest_first { "ASC" } else { "DESC" };
    // An id begins with the time of launch.
    let which = format!(
        "WHERE (agents.deleted_at IS NOT NULL) = $2
          AND ($3::bytea IS NULL OR agents.type = $3)
          AND ($4::bytea IS NULL OR agents.name = $4)
          AND ($5::uuid IS NULL OR agents.id < $5)
          AND ($6::uuid IS NULL OR $6 < agents.id)
          AND ($7::text[] IS NULL OR agents.status = ANY ($7))
          AND ($8::boolean IS NULL OR agents.archived = $8)
          AND ($9::uuid IS NULL OR agents.launched_by = $9)
          {pinned}
        ORDER BY agents.id {order}
        LIMIT $10"
    );
    let values: [&(dyn ToSql + Sync); 9] = [
        deleted,
        &bytes_of(kind.as_deref()),
        &bytes_of(name.as_deref()),
        &before.map(AgentId::as_uuid),
        &after.map(AgentId::as_uuid),
        &words,
        &archived.wanted(),
        &launched_by.map(AgentId::as_uuid),
        &one_more(*limit),
    ];
    listed(db, &which, &values, (*limit, bounds)).await
}

/// A page of agents as shown in a list.
async fn listed(
    db: &Link,
    which: &str,
    values: &[&(dyn ToSql + Sync)],
    bounds: (usize, ListBounds),
) -> Result<ListPage<ListedAgent>, QueryFailure> {
    list_page(db, &format!("{LISTED} {which}"), values, bounds, listed_row, ListedAgent::bytes).await
}

fn listed_row(row: &Row, field_bytes: i32) -> Result<ListedAgent, StoreError> {
    let mut truncated = Vec::new();
    for (at, field) in (LENGTHS..).zip(LONG_FIELDS) {
        if column::<Option<i32>>(row, at)?.is_some_and(|bytes| field_bytes < bytes) {
            truncated.push(field);
        }
    }
    Ok(ListedAgent { agent: agent_of(row)?, truncated })
}

fn agent_of(row: &Row) -> Result<Agent, StoreError> {
    Ok(Agent {
        id: agent_id_of(row, 0)?,
        kind: text_of(row, 1)?,
        name: beginning_of(row, 2)?,
        status: status_of(row, 3)?,
        prompt: beginning_of(row, 4)?.unwrap_or_default(),
        model: beginning_of(row, 5)?,
        cwd: beginning_of(row, 6)?.unwrap_or_default(),
        session: maybe_text(row, 7)?,
        turn: turn_of(row, 8)?,
        head: sequence_of(row, 9)?,
        created_at: time_of(row, 10)?,
        updated_at: time_of(row, 11)?,
        ended_at: maybe_time(row, 12)?,
        deleted_at: maybe_time(row, 13)?,
        error: error_of(row)?,
        usage: json_of(row, 19)?,
        cost_usd: column(row, 20)?,
        metadata: json_of(row, 21)?,
        options: json_of(row, 22)?,
        cancel_on_disconnect: column(row, 23)?,
        queued: column::<i64>(row, 24)? as u32,
        chat: maybe_text(row, 25)?,
        home: column::<Option<i64>>(row, 34)?.map(|home| NodeId(home as u64)),
        copy: copy_of(row)?,
        pinned: column(row, 30)?,
        archived: column(row, 31)?,
        launched_by: launched_by_of(row)?,
    })
}

fn copy_of(row: &Row) -> Result<Option<Copied>, StoreError> {
    Ok(match column::<Option<&str>>(row, 26)? {
        None => None,
        Some("file") => Some(Copied::File),
        Some(_) => Some(Copied::Replay(Replay {
            of: agent_id_of(row, 27)?,
            until: sequence_of(row, 28)?,
            speed: column(row, 29)?,
        })),
    })
}

fn launched_by_of(row: &Row) -> Result<Option<LaunchedBy>, StoreError> {
    Ok(match column::<Option<i32>>(row, 33)? {
        Some(depth) => Some(LaunchedBy { agent: agent_id_of(row, 32)?, depth: depth as u32 }),
        None => None,
    })
}

fn error_of(row: &Row) -> Result<Option<AgentError>, StoreError> {
    let Some(class) = maybe_parsed(row, 14, ErrorClass::from_name)? else { return Ok(None) };
    Ok(Some(AgentError {
        class,
        code: maybe_text(row, 15)?,
        text: beginning_of(row, 16)?.unwrap_or_default(),
        retry_after_ms: column::<Option<i64>>(row, 17)?.map(|ms| ms as u64),
        recoverable: column(row, 18)?,
    }))
}
