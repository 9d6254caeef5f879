//! What an append changes besides the journal, one statement each.

use tokenrail_domain::{CommitId, Event, SessionId, StopReason, Turn, TurnResult};
use tokenrail_ports::Append;
use tokenrail_ports::rules::JournalState;

use crate::format::images;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::latest_result::save_result;

const MOVE_HEAD: &str = "
    UPDATE heads
    SET head = $2, open_from = $3, turn = $4, running = $5, spool_offset = $6, updated_at = $7
    WHERE agent = $1";

const UNARCHIVE: &str = "UPDATE agents SET archived = false WHERE key = $1 AND archived";

const START_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, stop, asked_at, first_sequence, spool_offset,
        base_commit)
    VALUES ($1, $2, $3, $4, $5, 'running', $6, $7, $8, $9, $10)
    ON CONFLICT (agent, number) DO UPDATE
    SET state = 'running', first_sequence = excluded.first_sequence, spool_offset = excluded.spool_offset,
        base_commit = excluded.base_commit";

const SET_SESSION: &str = "UPDATE agents SET session_id = $2 WHERE key = $1";

const AGENT_STARTS: &str = "
    UPDATE agents
    SET status = 'running', ended_at = NULL, usage = NULL, error_class = NULL, error_code = NULL,
        error_text = NULL, error_retry_after_ms = NULL, error_recoverable = NULL
    WHERE key = $1";

const END_TURN: &str = "
    UPDATE turns
    SET state = 'ended', outcome = $3, first_sequence = coalesce(first_sequence, $4), last_sequence = $5,
        spool_offset = $6
    WHERE agent = $1 AND number = $2";

const AGENT_ENDS: &str = "
    UPDATE agents
    SET usage = $1, cost_usd = coalesce($2, cost_usd), error_class = $3, error_code = $4, error_text = $5,
        error_retry_after_ms = $6, error_recoverable = $7, status = $9, ended_at = $10
    WHERE key = $8";

const WAIT_AGAIN: &str = "
    UPDATE agents
    SET status = 'initializing', ended_at = NULL
    WHERE key = $1 AND status NOT IN ('initializing', 'running')
        AND EXISTS (
            SELECT FROM turns WHERE agent = $1 AND state <> 'ended' AND state = 'queued' AND stop IS NULL
        )";

/// The statements of these steps.
pub(super) const STATEMENTS: [&str; 8] =
    [MOVE_HEAD, UNARCHIVE, SET_SESSION, START_TURN, AGENT_STARTS, END_TURN, AGENT_ENDS, WAIT_AGAIN];

pub(super) async fn move_head(
    db: &Link,
    agent: i64,
    append: &Append,
    (after, last): (JournalState, &Event),
) -> Result<(), QueryFailure> {
    let JournalState { status: _, head, turn, running, epoch: _ } = after;
    let open_from = append.open_from.map(|first| first.0 as i64);
    let (head, spool_offset) = (head.0 as i64, append.spool_offset as i64);
    db.run(MOVE_HEAD, &[&agent, &head, &open_from, &int(turn.0), &running, &spool_offset, &last.at.0])
        .await?;
    Ok(())
}

pub(super) async fn set_session(db: &Link, agent: i64, session: &SessionId) -> Result<(), QueryFailure> {
    db.run(SET_SESSION, &[&agent, &session.as_str().as_bytes()]).await?;
    Ok(())
}

pub(super) async fn start_turn(
    db: &Link,
    agent: i64,
    append: &Append,
    turn: &Turn,
    first: &Event,
) -> Result<(), QueryFailure> {
    db.run(
        START_TURN,
        &[
            &agent,
            &int(turn.number.0),
            &int(turn.run.0),
            &turn.prompt.as_bytes(),
            &images::listed(&turn.images),
            &turn.stop.map(StopReason::as_str),
            &turn.asked_at.0,
            &(first.sequence.0 as i64),
            &(append.spool_offset as i64),
            &turn.base.as_ref().map(CommitId::as_str),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn agent_starts(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(AGENT_STARTS, &[&agent]).await?;
    Ok(())
}

pub(super) async fn end_turn(
    db: &Link,
    agent: i64,
    append: &Append,
    result: &TurnResult,
    (first, last): (&Event, &Event),
) -> Result<(), QueryFailure> {
    db.run(
        END_TURN,
        &[
            &agent,
            &int(first.turn.0),
            &result.outcome.as_str(),
            &(first.sequence.0 as i64),
            &(last.sequence.0 as i64),
            &(append.spool_offset as i64),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn agent_ends(
    db: &Link,
    agent: i64,
    result: &TurnResult,
    (after, last): (JournalState, &Event),
) -> Result<(), QueryFailure> {
    let status = after.status.as_str();
    save_result(db, AGENT_ENDS, &result.into(), &[&agent, &status, &last.at.0]).await
}

/// Puts an archived agent back into the lists. Returns whether it was archived.
pub(crate) async fn unarchive_if_archived(db: &Link, agent: i64) -> Result<bool, QueryFailure> {
    Ok(0 < db.run(UNARCHIVE, &[&agent]).await?)
}

pub(super) async fn unarchive(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    unarchive_if_archived(db, agent).await.map(drop)
}

/// `rules::begins_again` as a statement: whether a turn is queued.
pub(crate) async fn wait_again(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(WAIT_AGAIN, &[&agent]).await?;
    Ok(())
}
