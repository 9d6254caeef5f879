//! The table `agents`, read.

use rusqlite::{Connection, Row, ToSql, params_from_iter};
use tokenrail_domain::{Agent, AgentError, AgentId, Copied, ErrorClass, Replay, Timestamp};
use tokenrail_ports::{AgentFilter, StoreError};

use crate::columns::{agent_id_of, json_of, maybe, parsed, sequence_of, status_of, turn_of};
use crate::error::store_error;

/// The columns that [`agent_of`] reads, in its order.
const AGENT: &str = "
    SELECT agents.id, agents.type, agents.name, agents.status, agents.prompt, agents.model, agents.cwd,
        agents.session_id, heads.turn, heads.head, agents.created_at, heads.updated_at, agents.ended_at,
        agents.deleted_at, agents.error_class, agents.error_code, agents.error_text,
        agents.error_retry_after_ms, agents.error_recoverable, agents.usage, agents.cost_usd,
        agents.metadata, agents.options, agents.cancel_on_disconnect,
        (SELECT count(*) FROM turns
         WHERE turns.agent = agents.key AND turns.state <> 'ended' AND turns.state = 'queued'
            AND turns.stop IS NULL),
        agents.chat, agents.copy, agents.replay_of, agents.replay_until, agents.replay_speed
    FROM agents
    JOIN heads ON heads.agent = agents.key";

pub(crate) fn get(db: &Connection, id: AgentId) -> Result<Option<Agent>, StoreError> {
    Ok(select(db, "WHERE agents.id = ?1", &[&id.to_string()])?.pop())
}

/// Every agent that has a turn which waits or runs, oldest first.
pub(crate) fn with_open_turns(db: &Connection) -> Result<Vec<Agent>, StoreError> {
    let which = "
        WHERE agents.key IN (SELECT agent FROM turns WHERE state <> 'ended')
        ORDER BY agents.id";
    select(db, which, &[])
}

/// Every agent whose history is to be removed.
pub(crate) fn to_purge(db: &Connection) -> Result<Vec<Agent>, StoreError> {
    select(db, "WHERE agents.to_purge = 1 ORDER BY agents.id", &[])
}

pub(crate) fn list(db: &Connection, filter: &AgentFilter) -> Result<Vec<Agent>, StoreError> {
    let AgentFilter { statuses, kind, before, deleted, limit } = filter;
    let before = before.map(|id| id.to_string());
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    let words: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
    let mut values: Vec<&dyn ToSql> = vec![deleted, kind, &before, &limit];
    values.extend(words.iter().map(|word| word as &dyn ToSql));
    let status = if words.is_empty() {
        String::new()
    } else {
        let places: Vec<String> = (5..5 + words.len()).map(|place| format!("?{place}")).collect();
        format!("AND agents.status IN ({})", places.join(", "))
    };
    // An id begins with the time of launch.
    let which = format!(
        "WHERE (agents.deleted_at IS NOT NULL) = ?1
          AND (?2 IS NULL OR agents.type = ?2)
          AND (?3 IS NULL OR agents.id < ?3)
          {status}
        ORDER BY agents.id DESC
        LIMIT ?4"
    );
    select(db, &which, &values)
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

fn agent_of(row: &Row<'_>) -> rusqlite::Result<Agent> {
    Ok(Agent {
        id: agent_id_of(row, 0)?,
        kind: row.get(1)?,
        name: row.get(2)?,
        status: status_of(row, 3)?,
        prompt: row.get(4)?,
        model: row.get(5)?,
        cwd: row.get(6)?,
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
        copy: copy_of(row)?,
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

fn error_of(row: &Row<'_>) -> rusqlite::Result<Option<AgentError>> {
    if maybe::<String>(row, 14)?.is_none() {
        return Ok(None);
    }
    Ok(Some(AgentError {
        class: parsed(row, 14, ErrorClass::from_name)?,
        code: row.get(15)?,
        text: row.get(16)?,
        retry_after_ms: maybe::<i64>(row, 17)?.map(|ms| ms as u64),
        recoverable: row.get(18)?,
    }))
}
