//! Clients' idempotency keys.

use tokenrail_domain::{Timestamp, TurnNumber};
use tokenrail_ports::{Idempotency, KeyLife, Recalled};

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{agent_id_of, column, int, maybe_time, turn_of, unsigned};

const FORGET: &str = "DELETE FROM idempotency WHERE used_at < $1";

/// The newest turn is the newest one that a client asked for: an agent may have begun later ones by itself.
const FIND: &str = "
    SELECT idempotency.body, agents.id, idempotency.turn, idempotency.queued, agents.key,
        $3 <= idempotency.used_at AND (NOT $4 OR agents.deleted_at IS NULL AND idempotency.turn = (
            SELECT number FROM turns WHERE agent = agents.key AND run = number ORDER BY number DESC LIMIT 1))
    FROM idempotency
    JOIN agents ON agents.key = idempotency.agent
    WHERE idempotency.scope = $1 AND idempotency.key = $2";

/// Only as it was found: another command may have used it again meanwhile.
const FORGET_ONE: &str = "
    DELETE FROM idempotency
    WHERE scope = $1 AND key = $2 AND agent = $3 AND turn = $4";

/// Waits for a command with the same key that is under way.
const REMEMBER: &str = "
    INSERT INTO idempotency (scope, key, body, agent, turn, queued, used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (scope, key) DO NOTHING";

const NEWEST: &str = "SELECT max(used_at) FROM idempotency";

/// Like [`recall`], but also deletes keys that are too old.
pub(crate) async fn look_up(db: &Link, key: Option<&Idempotency>) -> Result<Option<Recalled>, QueryFailure> {
    let Some(key) = key else { return Ok(None) };
    db.run(FORGET, &[&key.forget_before.0]).await?;
    match find(db, key).await? {
        None => Ok(None),
        Some(found) if found.counts => Ok(Some(found.recalled)),
        Some(UsedKey { recalled, agent, .. }) => {
            let turn = int(recalled.turn.0);
            db.run(FORGET_ONE, &[&key.scope.as_bytes(), &key.key.as_bytes(), &agent, &turn]).await?;
            Ok(None)
        }
    }
}

/// What a key was used for. Only reads: keys that are too old do not count.
pub(crate) async fn recall(db: &Link, key: &Idempotency) -> Result<Option<Recalled>, QueryFailure> {
    Ok(find(db, key).await?.filter(|found| found.counts).map(|found| found.recalled))
}

/// A key as it is stored.
struct UsedKey {
    recalled: Recalled,
    agent: i64,
    /// It has not expired.
    counts: bool,
}

async fn find(db: &Link, key: &Idempotency) -> Result<Option<UsedKey>, QueryFailure> {
    let Idempotency { scope, key, body, used_at: _, forget_before, life } = key;
    let while_newest = *life == KeyLife::WhileNewest;
    let found = db.row(FIND, &[&scope.as_bytes(), &key.as_bytes(), &forget_before.0, &while_newest]).await?;
    let Some(row) = found else { return Ok(None) };
    let same_body = column::<&[u8]>(&row, 0)? == body.as_bytes();
    let (agent, turn) = (agent_id_of(&row, 1)?, turn_of(&row, 2)?);
    let recalled = Recalled { same_body, agent, turn, queued: unsigned(&row, 3)? };
    Ok(Some(UsedKey { recalled, agent: column(&row, 4)?, counts: column(&row, 5)? }))
}

/// When the newest key was used.
pub(crate) async fn newest(db: &Link) -> Result<Option<Timestamp>, QueryFailure> {
    match db.row(NEWEST, &[]).await? {
        Some(row) => Ok(maybe_time(&row, 0)?),
        None => Ok(None),
    }
}

/// Saves the key with the result of its command: the turn's number, and how many turns were queued.
///
/// # Errors
/// [`QueryFailure::Again`] if another command with this key was faster.
pub(crate) async fn remember(
    db: &Link,
    key: Option<&Idempotency>,
    agent: i64,
    (number, queued): (TurnNumber, u32),
) -> Result<(), QueryFailure> {
    let Some(Idempotency { scope, key, body, used_at, .. }) = key else { return Ok(()) };
    let added = db
        .run(
            REMEMBER,
            &[
                &scope.as_bytes(),
                &key.as_bytes(),
                &body.as_bytes(),
                &agent,
                &int(number.0),
                &int(queued),
                &used_at.0,
            ],
        )
        .await?;
    if added == 0 { Err(QueryFailure::Again) } else { Ok(()) }
}
