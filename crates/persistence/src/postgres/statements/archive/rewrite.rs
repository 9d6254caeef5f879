//! Rewrites stored events of an ended turn under their numbers.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Event, EventBody, Sequence};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::{are_consecutive, may_replace};

use crate::format::batch::BatchRange;
use crate::format::packing;
use crate::format::rows::{MessageRow, rows_of};
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{int, maybe_sequence};
use crate::postgres::statements::heads::lock_known;
use crate::postgres::statements::journal::{FetchLimit, add_batch, events_between};
use crate::postgres::statements::latest_result::save_result;
use crate::postgres::statements::message_row::add_messages;
use crate::postgres::statements::turn_ends;

/// The batches that hold any of the events.
const SPAN: &str = "
    SELECT min(first_seq), max(last_seq)
    FROM journal
    WHERE agent = $1 AND first_seq <= $3 AND $2 <= last_seq
        AND coalesce((SELECT max(first_seq) FROM journal WHERE agent = $1 AND first_seq <= $2), 0) <= first_seq";

/// Locks the turn: a compaction, which does not lock the agent, locks it too.
const TURN: &str = "
    SELECT last_sequence
    FROM turns
    WHERE agent = $1 AND number = $2 AND state = 'ended' AND first_sequence <= $3 AND $4 <= last_sequence
    FOR NO KEY UPDATE";

const REMOVE_BATCHES: &str = "
    DELETE FROM journal
    WHERE agent = $1 AND $2 <= first_seq AND first_seq <= $3 AND last_seq <= $3";

const REMOVE_MESSAGES: &str = "
    DELETE FROM agent_messages
    WHERE agent = $1 AND $2 <= sequence_number AND sequence_number <= $3";

const TO_COMPACT: &str = "UPDATE turns SET compacted = false WHERE agent = $1 AND number = $2";

/// The agent's row follows the result of its newest turn.
const FOLLOW_RESULT: &str = "
    UPDATE agents
    SET usage = $1, cost_usd = coalesce($2, cost_usd), error_class = $3, error_code = $4, error_text = $5,
        error_retry_after_ms = $6, error_recoverable = $7
    WHERE key = $8 AND (SELECT head FROM heads WHERE agent = $8) = $9
        AND status NOT IN ('initializing', 'running')";

pub(crate) struct RewriteCommand {
    agent: AgentId,
    events: Arc<[Event]>,
    rows: Vec<MessageRow>,
    fetch: FetchLimit,
}

impl RewriteCommand {
    pub(crate) fn new(agent: AgentId, events: Arc<[Event]>, fetch: FetchLimit) -> Result<Self, StoreError> {
        let rows = rows_of(agent, &events)?;
        Ok(Self { agent, events, rows, fetch })
    }

    async fn replace(&self, db: &Link, agent: i64, ends: (&Event, &Event)) -> Result<(), QueryFailure> {
        let (first, last) = ends;
        let (first_number, last_number) = (first.sequence.0 as i64, last.sequence.0 as i64);
        let conflict = || QueryFailure::Refused(StoreError::Conflict { head: last.sequence });
        let (from, to) = span(db, agent, (first_number, last_number)).await?.ok_or_else(conflict)?;
        let mut events = events_between(db, agent, (from, to), self.fetch).await?;
        for new in self.events.iter() {
            let at = (new.sequence.0 - from.0) as usize;
            let stored = events.get_mut(at).filter(|stored| may_replace(stored, new)).ok_or_else(conflict)?;
            *stored = new.clone();
        }
        let (codec, payload) =
            packing::pack_quick(&events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        db.run(REMOVE_BATCHES, &[&agent, &(from.0 as i64), &(to.0 as i64)]).await?;
        // Each batch belongs to one turn, so all batches in this range belong to this turn.
        let range = BatchRange { agent, first: from, last: to, turn: first.turn };
        add_batch(db, range, codec, &payload).await?;
        db.run(REMOVE_MESSAGES, &[&agent, &first_number, &last_number]).await?;
        add_messages(db, agent, &self.rows).await?;
        db.run(TO_COMPACT, &[&agent, &int(first.turn.0)]).await?;
        turn_ends::note(db, agent, Some(int(first.turn.0))).await?;
        match &last.body {
            EventBody::TurnResult(result) => {
                save_result(db, FOLLOW_RESULT, &(&**result).into(), &[&agent, &last_number]).await
            }
            _ => Ok(()),
        }
    }
}

impl ChangeCommand for RewriteCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        let (Some(first), Some(last)) = (self.events.first(), self.events.last()) else { return Ok(()) };
        let (first_number, last_number) = (first.sequence.0 as i64, last.sequence.0 as i64);
        let ended = db.row(TURN, &[&agent, &int(first.turn.0), &first_number, &last_number]).await?;
        if ended.is_none() || !are_consecutive(&self.events) {
            return Err(StoreError::Conflict { head: last.sequence }.into());
        }
        self.replace(db, agent, (first, last)).await
    }
}

async fn span(
    db: &Link,
    agent: i64,
    (first, last): (i64, i64),
) -> Result<Option<(Sequence, Sequence)>, QueryFailure> {
    let Some(row) = db.row(SPAN, &[&agent, &first, &last]).await? else { return Ok(None) };
    Ok(maybe_sequence(&row, 0)?.zip(maybe_sequence(&row, 1)?))
}
