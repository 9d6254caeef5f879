//! Rewrites stored events of an ended turn under their numbers.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, TurnResult};
use tokenrail_ports::StoreError;
use tokenrail_ports::rules::{are_consecutive, may_replace};

use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::sequence_of;
use crate::sqlite::statements::journal::{BatchWriter, agent_key, events_between};
use crate::sqlite::statements::latest_result::save_result;
use crate::sqlite::statements::message_row::add_message;
use crate::sqlite::statements::turn_ends;

/// The batches that hold any of the events.
const SPAN: &str = "
    SELECT min(first_seq), max(last_seq)
    FROM journal
    WHERE agent = :agent AND first_seq <= :last AND :first <= last_seq
        AND coalesce((SELECT max(first_seq) FROM journal WHERE agent = :agent AND first_seq <= :first), 0)
            <= first_seq";

const TURN: &str = "
    SELECT last_sequence
    FROM turns
    WHERE agent = :agent AND number = :number AND state = 'ended'
        AND first_sequence <= :first AND :last <= last_sequence";

const REMOVE_BATCHES: &str = "
    DELETE FROM journal
    WHERE agent = :agent AND :first <= first_seq AND first_seq <= :last AND last_seq <= :last";

const REMOVE_MESSAGES: &str = "
    DELETE FROM agent_messages
    WHERE agent_id = :id AND :first <= sequence_number AND sequence_number <= :last";

const TO_COMPACT: &str = "UPDATE turns SET compacted = 0 WHERE agent = :agent AND number = :number";

/// The agent's row follows the result of its newest turn.
const FOLLOW_RESULT: &str = "
    UPDATE agents
    SET usage = :usage, cost_usd = coalesce(:cost_usd, cost_usd),
        error_class = :error_class, error_code = :error_code, error_text = :error_text,
        error_retry_after_ms = :error_retry_after_ms, error_recoverable = :error_recoverable
    WHERE key = :agent
        AND (SELECT head FROM heads WHERE agent = :agent) = :last
        AND status NOT IN ('initializing', 'running')";

pub(crate) struct RewriteCommand {
    agent: AgentId,
    events: Arc<[Event]>,
    rows: Vec<MessageRow>,
}

impl RewriteCommand {
    pub(crate) fn new(agent: AgentId, events: Arc<[Event]>) -> Result<Self, StoreError> {
        let rows = rows_of(agent, &events)?;
        Ok(Self { agent, events, rows })
    }

    fn replace(&self, db: &Connection, agent: i64, ends: (&Event, &Event)) -> Result<(), WriteFailure> {
        let (first, last) = ends;
        let conflict = || WriteFailure::Refused(StoreError::Conflict { head: last.sequence });
        let (from, to) = span(db, agent, (first.sequence, last.sequence))?.ok_or_else(conflict)?;
        let mut events = events_between(db, agent, from, to).map_err(WriteFailure::Refused)?;
        for new in self.events.iter() {
            let at = (new.sequence.0 - from.0) as usize;
            let stored = events.get_mut(at).filter(|stored| may_replace(stored, new)).ok_or_else(conflict)?;
            *stored = new.clone();
        }
        let range = named_params! { ":agent": agent, ":first": from.0 as i64, ":last": to.0 as i64 };
        db.prepare_cached(REMOVE_BATCHES)?.execute(range)?;
        // Each batch belongs to one turn, so all batches in this range belong to this turn.
        BatchWriter { db, agent, turn: first.turn }.add(Codec::Packed, from, to, &packing::pack(&events))?;
        db.prepare_cached(REMOVE_MESSAGES)?.execute(named_params! {
            ":id": self.agent.to_string(),
            ":first": first.sequence.0 as i64,
            ":last": last.sequence.0 as i64,
        })?;
        for row in &self.rows {
            add_message(db, &self.agent.to_string(), row)?;
        }
        db.prepare_cached(TO_COMPACT)?.execute(named_params! { ":agent": agent, ":number": first.turn.0 })?;
        turn_ends::note(db, agent, Some(first.turn.0))?;
        match &last.body {
            EventBody::TurnResult(result) => Ok(follow(db, agent, last.sequence, result)?),
            _ => Ok(()),
        }
    }
}

impl WriteCommand for RewriteCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.events
            .iter()
            .map(|event| event.body.text_bytes() + event.raw.as_ref().map_or(0, bytes::Bytes::len))
            .sum()
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        let agent = agent_key(db, self.agent).map_err(WriteFailure::Refused)?;
        let (Some(first), Some(last)) = (self.events.first(), self.events.last()) else { return Ok(()) };
        let turn = named_params! {
            ":agent": agent,
            ":number": first.turn.0,
            ":first": first.sequence.0 as i64,
            ":last": last.sequence.0 as i64,
        };
        let ended = db.prepare_cached(TURN)?.query_row(turn, |row| sequence_of(row, 0)).optional()?;
        if ended.is_none() || !are_consecutive(&self.events) {
            return Err(WriteFailure::Refused(StoreError::Conflict { head: last.sequence }));
        }
        self.replace(db, agent, (first, last))
    }
}

fn span(
    db: &Connection,
    agent: i64,
    (first, last): (Sequence, Sequence),
) -> Result<Option<(Sequence, Sequence)>, WriteFailure> {
    let mut statement = db.prepare_cached(SPAN)?;
    let range = named_params! { ":agent": agent, ":first": first.0 as i64, ":last": last.0 as i64 };
    let found: (Option<i64>, Option<i64>) = statement
        .query_row(range, |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|e| WriteFailure::Refused(store_error(e)))?;
    let number = |number: i64| Sequence(number.unsigned_abs());
    Ok(found.0.map(number).zip(found.1.map(number)))
}

fn follow(db: &Connection, agent: i64, last: Sequence, result: &TurnResult) -> rusqlite::Result<()> {
    let follow = named_params! { ":agent": agent, ":last": last.0 as i64 };
    save_result(db, FOLLOW_RESULT, &result.into(), follow)
}
