//! Adds a turn that waits.

use std::sync::OnceLock;

use tokenrail_domain::{Turn, TurnNumber};
use uuid::Uuid;

use crate::format::images;
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;

const ADD_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, asked_at, spool_offset, command, queued_on)
    VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0, $7, $8)";

/// The timeline on which a turn was queued first. It may have been saved there, and lost by a failover since: then its
/// node may have begun it.
#[derive(Debug, Default)]
pub(crate) struct FirstTimeline(OnceLock<u32>);

impl FirstTimeline {
    /// The one of this connection, unless there was one before. `None` if the server did not say it.
    fn or_that_of(&self, db: &Link) -> Option<i64> {
        let first = *self.0.get_or_init(|| db.timeline());
        (first != UNKNOWN_TIMELINE).then(|| i64::from(first))
    }
}

/// `command` is the id of the message, if the turn is one.
pub(crate) async fn add_turn(
    db: &Link,
    agent: i64,
    turn: &Turn,
    (number, command): (TurnNumber, Option<Uuid>),
    first: &FirstTimeline,
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
            &first.or_that_of(db),
        ],
    )
    .await?;
    Ok(())
}
