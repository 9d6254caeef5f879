//! Adds a turn that waits.

use tokenrail_domain::{Turn, TurnNumber};

use crate::format::images;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;

const ADD_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, asked_at, spool_offset)
    VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0)";

pub(crate) async fn add_turn(
    db: &Link,
    agent: i64,
    turn: &Turn,
    number: TurnNumber,
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
        ],
    )
    .await?;
    Ok(())
}
