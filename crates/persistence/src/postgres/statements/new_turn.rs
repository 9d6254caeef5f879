//! Adds a turn that waits.

use tokenrail_domain::{Turn, TurnNumber};
use uuid::Uuid;

use crate::format::images;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;

const ADD_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, asked_at, spool_offset, command)
    VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0, $7)";

/// `command` is the id of the message, if the turn is one.
pub(crate) async fn add_turn(
    db: &Link,
    agent: i64,
    turn: &Turn,
    (number, command): (TurnNumber, Option<Uuid>),
) -> Result<(), QueryFailure> {
    db.run(
        ADD_TURN,
        &[
            &agent,
            &int(number.0),
            &int(turn.run.0),
            &turn.prompt.as_bytes(),
            &images::listed(&turn.images),
            &turn.asked_at.0,
            &command,
        ],
    )
    .await?;
    Ok(())
}
