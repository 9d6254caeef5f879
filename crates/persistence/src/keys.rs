//! Clients' idempotency keys.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{AgentId, Turn, TurnNumber};
use tokenrail_ports::{Idempotency, Recalled};

use crate::columns::{agent_id_of, turn_of};

const FORGET: &str = "DELETE FROM idempotency WHERE used_at < :forget_before";

const FIND: &str = "
    SELECT idempotency.body, agents.id, idempotency.turn, idempotency.queued
    FROM idempotency
    JOIN agents ON agents.key = idempotency.agent
    WHERE idempotency.scope = :scope AND idempotency.key = :key";

const RECALL: &str = "
    SELECT idempotency.body, agents.id, idempotency.turn, idempotency.queued
    FROM idempotency
    JOIN agents ON agents.key = idempotency.agent
    WHERE idempotency.scope = :scope AND idempotency.key = :key AND :forget_before <= idempotency.used_at";

const REMEMBER: &str = "
    INSERT INTO idempotency (scope, key, body, agent, turn, queued, used_at)
    VALUES (:scope, :key, :body, :agent, :turn, :queued, :used_at)";

/// What is known of a key.
pub(crate) enum Known {
    No,
    SameBody(Used),
    OtherBody,
}

/// What a key gave.
pub(crate) struct Used {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    pub(crate) queued: u32,
}

/// Looks the key up, and forgets those that are too old.
pub(crate) fn look_up(db: &Connection, key: Option<&Idempotency>) -> rusqlite::Result<Known> {
    let Some(Idempotency { scope, key, body, forget_before }) = key else { return Ok(Known::No) };
    db.prepare_cached(FORGET)?.execute(named_params! { ":forget_before": forget_before.0 })?;
    let found: Option<(String, Used)> = db
        .prepare_cached(FIND)?
        .query_row(named_params! { ":scope": scope, ":key": key }, |row| {
            let used = Used { agent: agent_id_of(row, 1)?, turn: turn_of(row, 2)?, queued: row.get(3)? };
            Ok((row.get(0)?, used))
        })
        .optional()?;
    Ok(match found {
        None => Known::No,
        Some((used_for, used)) if used_for == *body => Known::SameBody(used),
        Some(_) => Known::OtherBody,
    })
}

/// What a key was used for. It only reads: keys that are too old are as good as forgotten.
pub(crate) fn recall(db: &Connection, key: &Idempotency) -> rusqlite::Result<Option<Recalled>> {
    let Idempotency { scope, key, body, forget_before } = key;
    db.prepare_cached(RECALL)?
        .query_row(named_params! { ":scope": scope, ":key": key, ":forget_before": forget_before.0 }, |row| {
            let same_body = row.get_ref(0)?.as_str()? == body;
            let (agent, turn) = (agent_id_of(row, 1)?, turn_of(row, 2)?);
            Ok(Recalled { same_body, agent, turn, queued: row.get(3)? })
        })
        .optional()
}

/// Saves the key with what it gave: the turn's number, and how many were waiting.
pub(crate) fn remember(
    db: &Connection,
    key: Option<&Idempotency>,
    agent: i64,
    turn: &Turn,
    (number, queued): (TurnNumber, u32),
) -> rusqlite::Result<()> {
    let Some(Idempotency { scope, key, body, forget_before: _ }) = key else { return Ok(()) };
    db.prepare_cached(REMEMBER)?.execute(named_params! {
        ":scope": scope,
        ":key": key,
        ":body": body,
        ":agent": agent,
        ":turn": number.0,
        ":queued": queued,
        ":used_at": turn.asked_at.0,
    })?;
    Ok(())
}
