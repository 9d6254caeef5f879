//! Clients' idempotency keys.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{Timestamp, TurnNumber};
use tokenrail_ports::{Idempotency, KeyLife, Recalled};

use crate::sqlite::statements::columns::{agent_id_of, turn_of};

const FORGET: &str = "DELETE FROM idempotency WHERE used_at < :forget_before";

/// The newest turn is the newest one that a client asked for: an agent may have begun later ones by itself.
const FIND: &str = "
    SELECT idempotency.body, agents.id, idempotency.turn, idempotency.queued
    FROM idempotency
    JOIN agents ON agents.key = idempotency.agent
    WHERE idempotency.scope = :scope AND idempotency.key = :key AND :forget_before <= idempotency.used_at
        AND (NOT :while_newest OR agents.deleted_at IS NULL AND idempotency.turn = (
            SELECT number FROM turns WHERE agent = agents.key AND run = number ORDER BY number DESC LIMIT 1))";

/// A key that already exists has expired, so it is overwritten.
const REMEMBER: &str = "
    INSERT INTO idempotency (scope, key, body, agent, turn, queued, used_at)
    VALUES (:scope, :key, :body, :agent, :turn, :queued, :used_at)
    ON CONFLICT (scope, key) DO UPDATE
    SET body = :body, agent = :agent, turn = :turn, queued = :queued, used_at = :used_at";

const NEWEST: &str = "SELECT max(used_at) FROM idempotency";

/// Like [`recall`], but also deletes keys that are too old.
pub(crate) fn look_up(db: &Connection, key: Option<&Idempotency>) -> rusqlite::Result<Option<Recalled>> {
    let Some(key) = key else { return Ok(None) };
    db.prepare_cached(FORGET)?.execute(named_params! { ":forget_before": key.forget_before.0 })?;
    recall(db, key)
}

/// What a key was used for. Only reads: keys that are too old do not count.
pub(crate) fn recall(db: &Connection, key: &Idempotency) -> rusqlite::Result<Option<Recalled>> {
    let Idempotency { scope, key, body, used_at: _, forget_before, life } = key;
    let find = named_params! {
        ":scope": scope,
        ":key": key,
        ":forget_before": forget_before.0,
        ":while_newest": *life == KeyLife::WhileNewest,
    };
    db.prepare_cached(FIND)?
        .query_row(find, |row| {
            let same_body = row.get_ref(0)?.as_str()? == body;
            let (agent, turn) = (agent_id_of(row, 1)?, turn_of(row, 2)?);
            Ok(Recalled { same_body, agent, turn, queued: row.get(3)? })
        })
        .optional()
}

/// When the newest key was used.
pub(crate) fn newest(db: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    db.prepare_cached(NEWEST)?.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp)))
}

/// Saves the key with the result of its command: the turn's number, and how many turns were queued.
pub(crate) fn remember(
    db: &Connection,
    key: Option<&Idempotency>,
    agent: i64,
    (number, queued): (TurnNumber, u32),
) -> rusqlite::Result<()> {
    let Some(Idempotency { scope, key, body, used_at, .. }) = key else { return Ok(()) };
    db.prepare_cached(REMEMBER)?.execute(named_params! {
        ":scope": scope,
        ":key": key,
        ":body": body,
        ":agent": agent,
        ":turn": number.0,
        ":queued": queued,
        ":used_at": used_at.0,
    })?;
    Ok(())
}
