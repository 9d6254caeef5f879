//! Imports: whole histories from outside.

mod rewrite;

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{Agent, AgentId, CommitId, Event, Sequence, StopReason, TurnState};
use tokenrail_ports::rules::{are_consecutive, may_finish_import};
use tokenrail_ports::{NewTurn, StoreError};

use crate::format::images;
use crate::format::latest_result::LatestResult;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::statements::commands::{add_agent, refuse_taken_id};
use crate::sqlite::statements::journal::{BatchWriter, events_between};
use crate::sqlite::statements::latest_result::save_result;
use crate::sqlite::statements::message_row::add_message;
use crate::sqlite::statements::{prompt_images, turn_ends};

pub(crate) use rewrite::RewriteCommand;

const HIDE: &str = "UPDATE agents SET deleted_at = created_at, to_purge = 1 WHERE key = :agent";

/// An agent whose import is not finished.
const IMPORTED: &str = "
    SELECT agents.key, heads.head
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = :id AND agents.copy = 'file' AND agents.to_purge = 1";

const ADD_ENDED_TURN: &str = "
    INSERT INTO turns
        (agent, number, run, prompt, state, outcome, stop, asked_at, first_sequence, last_sequence, spool_offset,
         images, base_commit, compacted)
    VALUES
        (:agent, :number, :run, :prompt, 'ended', :outcome, :stop, :asked_at, :first_sequence, :last_sequence,
         :spool_offset, :images, :base_commit, 1)";

const MOVE_HEAD: &str = "UPDATE heads SET head = :head WHERE agent = :agent";

const SHOW: &str = "
    UPDATE agents
    SET status = :status, ended_at = :ended_at, session_id = :session, usage = :usage, cost_usd = :cost_usd,
        error_class = :error_class, error_code = :error_code, error_text = :error_text,
        error_retry_after_ms = :error_retry_after_ms, error_recoverable = :error_recoverable,
        deleted_at = NULL, to_purge = 0
    WHERE key = :agent";

const SHOW_HEAD: &str = "UPDATE heads SET turn = :turn, updated_at = :updated_at WHERE agent = :agent";

/// From now on, its batches can be compacted.
const TO_COMPACT: &str = "UPDATE turns SET compacted = 0 WHERE agent = :agent";

const REMOVE: &str = "DELETE FROM agents WHERE key = :agent";

fn imported(db: &Connection, id: AgentId) -> Result<Option<(i64, Sequence)>, WriteFailure> {
    let mut statement = db.prepare_cached(IMPORTED)?;
    let found = statement.query_row(named_params! { ":id": id.to_string() }, |row| {
        Ok((row.get(0)?, Sequence(row.get::<_, i64>(1)?.unsigned_abs())))
    });
    Ok(found.optional()?)
}

fn conflict(head: Sequence) -> WriteFailure {
    WriteFailure::Refused(StoreError::Conflict { head })
}

fn undone(error: rusqlite::Error, head: Sequence) -> WriteFailure {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) {
        WriteFailure::Undo(StoreError::Conflict { head })
    } else {
        WriteFailure::from(error)
    }
}

pub(crate) struct BeginImportCommand(pub(crate) Agent);

impl WriteCommand for BeginImportCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.0.prompt.len()
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        refuse_taken_id(db, self.0.id)?;
        let agent = add_agent(db, &self.0)?;
        db.prepare_cached(HIDE)?.execute(named_params! { ":agent": agent })?;
        Ok(())
    }
}

pub(crate) struct ImportTurnsCommand {
    pub(crate) agent: AgentId,
    pub(crate) turns: Vec<NewTurn>,
}

impl WriteCommand for ImportTurnsCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.turns.iter().map(|new| new.bytes() + size_of::<NewTurn>()).sum()
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        let (agent, head) = imported(db, self.agent)?.ok_or_else(|| conflict(Sequence::START))?;
        for new in &self.turns {
            let turn = new.turn();
            let TurnState::Ended(outcome) = turn.state else {
                return Err(WriteFailure::Undo(StoreError::Conflict { head }));
            };
            let added = db.prepare_cached(ADD_ENDED_TURN)?.execute(named_params! {
                ":agent": agent,
                ":number": turn.number.0,
                ":run": turn.run.0,
                ":prompt": turn.prompt,
                ":outcome": outcome.as_str(),
                ":stop": turn.stop.map(StopReason::as_str),
                ":asked_at": turn.asked_at.0,
                ":first_sequence": turn.first_sequence.map(|first| first.0 as i64),
                ":last_sequence": turn.last_sequence.map(|last| last.0 as i64),
                ":spool_offset": turn.spool_offset as i64,
                ":images": images::listed_of_import(new),
                ":base_commit": turn.base.as_ref().map(CommitId::as_str),
            });
            added.map_err(|error| undone(error, head))?;
            prompt_images::add(db, agent, turn.number, new.images())?;
        }
        Ok(())
    }
}

pub(crate) struct ImportEventsCommand {
    agent: AgentId,
    events: Arc<[Event]>,
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
}

impl ImportEventsCommand {
    /// Packs the events on the caller's thread.
    pub(crate) fn new(agent: AgentId, events: Arc<[Event]>) -> Result<Self, StoreError> {
        let rows = rows_of(agent, &events)?;
        Ok(Self { agent, payload: packing::pack(&events), events, rows })
    }
}

impl WriteCommand for ImportEventsCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.payload.len()
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        let (agent, head) = imported(db, self.agent)?.ok_or_else(|| conflict(Sequence::START))?;
        let (Some(first), Some(last)) = (self.events.first(), self.events.last()) else { return Ok(()) };
        if first.sequence != head.next() {
            let there =
                events_between(db, agent, first.sequence, last.sequence).map_err(WriteFailure::Refused)?;
            return if there == *self.events { Ok(()) } else { Err(conflict(head)) };
        }
        if !are_consecutive(&self.events) {
            return Err(conflict(head));
        }
        let journal = BatchWriter { db, agent, turn: first.turn };
        journal.add(Codec::Packed, first.sequence, last.sequence, &self.payload)?;
        for row in &self.rows {
            add_message(db, &self.agent.to_string(), row).map_err(|error| undone(error, head))?;
        }
        let moved = named_params! { ":agent": agent, ":head": last.sequence.0 as i64 };
        db.prepare_cached(MOVE_HEAD)?.execute(moved)?;
        Ok(())
    }
}

pub(crate) struct FinishImportCommand(pub(crate) Agent);

impl WriteCommand for FinishImportCommand {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        let Agent { id, status, turn, ended_at, updated_at, session, usage, cost_usd, error, .. } = &self.0;
        let (agent, newest) = imported(db, *id)?.ok_or_else(|| conflict(Sequence::START))?;
        if !may_finish_import(&self.0, newest) {
            return Err(conflict(newest));
        }
        let latest = LatestResult { usage: usage.as_ref(), cost_usd: *cost_usd, error: error.as_ref() };
        let show = named_params! {
            ":agent": agent,
            ":status": status.as_str(),
            ":ended_at": ended_at.map(|at| at.0),
            ":session": session,
        };
        save_result(db, SHOW, &latest, show)?;
        let shown = named_params! { ":agent": agent, ":turn": turn.0, ":updated_at": updated_at.0 };
        db.prepare_cached(SHOW_HEAD)?.execute(shown)?;
        db.prepare_cached(TO_COMPACT)?.execute(named_params! { ":agent": agent })?;
        turn_ends::note(db, agent, None)?;
        Ok(())
    }
}

pub(crate) struct DiscardImportCommand(pub(crate) AgentId);

impl WriteCommand for DiscardImportCommand {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        if let Some((agent, _)) = imported(db, self.0)? {
            db.prepare_cached(REMOVE)?.execute(named_params! { ":agent": agent })?;
            // Only a purge promises a wipe. An import that fails must not cause the whole database to be rewritten.
        }
        Ok(())
    }

    fn empties_log(&self) -> bool {
        true
    }
}
