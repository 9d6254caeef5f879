//! Appending to a journal: the one write that every token goes through.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{AgentId, CommitId, Event, Sequence, StopReason, Turn, TurnNumber, TurnResult};
use tokenrail_ports::rules::{self, AppendDecision, JournalState, NewEvents, TurnPhase};
use tokenrail_ports::{Append, StoreError, TurnStep};

use crate::format::images;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::database::reserve::ReserveUse;
use crate::sqlite::statements::columns::{epoch_of, status_of, turn_of};
use crate::sqlite::statements::journal::{BatchWriter, events_between};
use crate::sqlite::statements::latest_result::save_result;
use crate::sqlite::statements::message_row::add_message;
use crate::sqlite::statements::turn_ends;

pub(crate) const PLACE: &str = "
    SELECT agents.key, agents.status, heads.head, heads.turn, heads.running, heads.epoch
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = :id";

const TURN_STATE: &str = "
    SELECT state
    FROM turns
    WHERE agent = :agent AND number = :number";

const MOVE_HEAD: &str = "
    UPDATE heads
    SET head = ?1, open_from = ?2, turn = ?3, running = ?4, spool_offset = ?5, updated_at = ?6
    WHERE agent = ?7";

/// Puts an archived agent back into the lists.
pub(super) const UNARCHIVE: &str = "UPDATE agents SET archived = 0 WHERE key = :agent AND archived = 1";

const SET_SESSION: &str = "UPDATE agents SET session_id = :session WHERE key = :agent";

const START_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, stop, asked_at, first_sequence, spool_offset,
        base_commit)
    VALUES (:agent, :number, :run, :prompt, :images, 'running', :stop, :asked_at, :first_sequence, :spool_offset,
        :base_commit)
    ON CONFLICT (agent, number) DO UPDATE
    SET state = 'running', first_sequence = excluded.first_sequence, spool_offset = excluded.spool_offset,
        base_commit = excluded.base_commit";

const AGENT_STARTS: &str = "
    UPDATE agents
    SET status = 'running', ended_at = NULL, usage = NULL, error_class = NULL, error_code = NULL,
        error_text = NULL, error_retry_after_ms = NULL, error_recoverable = NULL
    WHERE key = :agent";

const END_TURN: &str = "
    UPDATE turns
    SET state = 'ended', outcome = :outcome, last_sequence = :last_sequence, spool_offset = :spool_offset,
        first_sequence = coalesce(first_sequence, :first_sequence)
    WHERE agent = :agent AND number = :number";

const WAIT_AGAIN: &str = "
    UPDATE agents
    SET status = 'initializing', ended_at = NULL
    WHERE key = :agent AND status NOT IN ('initializing', 'running')
        AND EXISTS (
            SELECT 1
            FROM turns
            WHERE agent = :agent AND state <> 'ended' AND state = 'queued' AND stop IS NULL
        )";

const AGENT_ENDS: &str = "
    UPDATE agents
    SET status = :status, ended_at = :ended_at, usage = :usage, cost_usd = coalesce(:cost_usd, cost_usd),
        error_class = :error_class, error_code = :error_code, error_text = :error_text,
        error_retry_after_ms = :error_retry_after_ms, error_recoverable = :error_recoverable
    WHERE key = :agent";

/// The end of a turn may use the reserved disk space if it is not larger than this.
const SMALL_END_BYTES: usize = 64 << 10;

/// An append with those that are chained to it (`Append::then`), in one transaction. Its events are packed on the
/// caller's thread, so that the writer only writes.
pub(crate) struct AppendCommand {
    append: Append,
    /// One for each part; `None` if a part is not well-formed.
    prepared: Vec<Option<Prepared>>,
}

struct Prepared {
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
}

/// The agent's key in the database, and what the rules ask about its journal.
struct Journal {
    agent: i64,
    state: JournalState,
}

impl AppendCommand {
    pub(crate) fn new(append: Append) -> Result<Self, StoreError> {
        let prepared = append.parts().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { append, prepared })
    }
}

fn prepare(append: &Append) -> Result<Option<Prepared>, StoreError> {
    if !rules::is_well_formed(append) {
        return Ok(None);
    }
    let rows = rows_of(append.agent, &append.events)?;
    Ok(Some(Prepared { payload: packing::pack(&append.events), rows }))
}

impl WriteCommand for AppendCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.prepared.iter().flatten().map(|prepared| prepared.payload.len()).sum()
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.append.agent)
    }

    fn reserve_use(&self) -> ReserveUse {
        let ends = self.append.parts().any(|part| part.step == TurnStep::End);
        if ends && self.bytes() <= SMALL_END_BYTES { ReserveUse::Ends } else { ReserveUse::None }
    }

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        for (part, (append, prepared)) in self.append.parts().zip(&self.prepared).enumerate() {
            run_part(db, append, prepared.as_ref()).map_err(|failure| match failure {
                // The parts before it have been written.
                WriteFailure::Refused(error) if 0 < part => WriteFailure::Undo(error),
                failure => failure,
            })?;
        }
        Ok(())
    }
}

fn run_part(db: &Connection, append: &Append, prepared: Option<&Prepared>) -> Result<(), WriteFailure> {
    let Journal { agent, state } = journal_of(db, append.agent)?;
    let conflict = || StoreError::Conflict { head: state.head };
    let refused = || WriteFailure::Refused(state.refusal(append));
    let Some(prepared) = prepared else { return Err(WriteFailure::Refused(conflict())) };
    match state.admit(append, |turn| phase_of(db, agent, turn))? {
        AppendDecision::Refuse => Err(refused()),
        AppendDecision::Compare { first, last } => {
            let stored = events_between(db, agent, first, last).map_err(WriteFailure::Refused)?;
            if stored == *append.events { Ok(()) } else { Err(refused()) }
        }
        AppendDecision::Write(new) => write(db, agent, append, prepared, new).map_err(|error| {
            // A message that is completed twice, or an id that exists already: a bug of the caller.
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) {
                WriteFailure::Undo(conflict())
            } else {
                WriteFailure::from(error)
            }
        }),
    }
}

fn journal_of(db: &Connection, id: AgentId) -> Result<Journal, WriteFailure> {
    let mut statement = db.prepare_cached(PLACE)?;
    let found = statement
        .query_row(named_params! { ":id": id.to_string() }, |row| {
            let state = JournalState {
                status: status_of(row, 1)?,
                head: Sequence(row.get::<_, i64>(2)?.unsigned_abs()),
                turn: turn_of(row, 3)?,
                running: row.get(4)?,
                epoch: epoch_of(row, 5)?,
            };
            Ok(Journal { agent: row.get(0)?, state })
        })
        .optional()?;
    found.ok_or(WriteFailure::Refused(StoreError::UnknownAgent(id)))
}

fn phase_of(db: &Connection, agent: i64, turn: TurnNumber) -> rusqlite::Result<Option<TurnPhase>> {
    db.prepare_cached(TURN_STATE)?
        .query_row(named_params! { ":agent": agent, ":number": turn.0 }, |row| {
            Ok(match row.get_ref(0)?.as_str()? {
                "queued" => TurnPhase::Queued,
                "running" => TurnPhase::Running,
                _ => TurnPhase::Ended,
            })
        })
        .optional()
}

fn write(
    db: &Connection,
    agent: i64,
    append: &Append,
    prepared: &Prepared,
    new: NewEvents<'_>,
) -> rusqlite::Result<()> {
    let NewEvents { first, last, result, after } = new;
    let journal = BatchWriter { db, agent, turn: first.turn };
    journal.add(Codec::Packed, first.sequence, last.sequence, &prepared.payload)?;
    for row in &prepared.rows {
        add_message(db, &append.agent.to_string(), row)?;
    }
    move_head(db, agent, append, (after, last))?;
    if let Some(session) = &append.session {
        db.prepare_cached(SET_SESSION)?
            .execute(named_params! { ":agent": agent, ":session": session.as_str() })?;
    }
    if rules::needs_user(append) {
        db.prepare_cached(UNARCHIVE)?.execute(named_params! { ":agent": agent })?;
    }
    if let TurnStep::Start(turn) = &append.step {
        start(db, agent, append, turn, first)?;
    }
    match result {
        Some(result) => end(db, agent, append, result, new),
        None => Ok(()),
    }
}

fn move_head(
    db: &Connection,
    agent: i64,
    append: &Append,
    (after, last): (JournalState, &Event),
) -> rusqlite::Result<()> {
    // The parameters are in the order of the statement, as in `BatchWriter::add`.
    db.prepare_cached(MOVE_HEAD)?.execute((
        after.head.0 as i64,
        append.open_from.map(|first| first.0 as i64),
        after.turn.0,
        after.running,
        append.spool_offset as i64,
        last.at.0,
        agent,
    ))?;
    Ok(())
}

fn start(db: &Connection, agent: i64, append: &Append, turn: &Turn, first: &Event) -> rusqlite::Result<()> {
    db.prepare_cached(START_TURN)?.execute(named_params! {
        ":agent": agent,
        ":number": turn.number.0,
        ":run": turn.run.0,
        ":prompt": turn.prompt,
        ":images": images::listed(&turn.images),
        ":stop": turn.stop.map(StopReason::as_str),
        ":asked_at": turn.asked_at.0,
        ":first_sequence": first.sequence.0 as i64,
        ":spool_offset": append.spool_offset as i64,
        ":base_commit": turn.base.as_ref().map(CommitId::as_str),
    })?;
    db.prepare_cached(AGENT_STARTS)?.execute(named_params! { ":agent": agent })?;
    Ok(())
}

fn end(
    db: &Connection,
    agent: i64,
    append: &Append,
    result: &TurnResult,
    NewEvents { first, last, after, .. }: NewEvents<'_>,
) -> rusqlite::Result<()> {
    db.prepare_cached(END_TURN)?.execute(named_params! {
        ":agent": agent,
        ":number": first.turn.0,
        ":outcome": result.outcome.as_str(),
        ":first_sequence": first.sequence.0 as i64,
        ":last_sequence": last.sequence.0 as i64,
        ":spool_offset": append.spool_offset as i64,
    })?;
    let agent_ends =
        named_params! { ":agent": agent, ":status": after.status.as_str(), ":ended_at": last.at.0 };
    save_result(db, AGENT_ENDS, &result.into(), agent_ends)?;
    turn_ends::note(db, agent, Some(first.turn.0))?;
    wait_again(db, agent)
}

/// `rules::begins_again` as a statement: whether a turn is queued.
pub(crate) fn wait_again(db: &Connection, agent: i64) -> rusqlite::Result<()> {
    db.prepare_cached(WAIT_AGAIN)?.execute(named_params! { ":agent": agent })?;
    Ok(())
}
