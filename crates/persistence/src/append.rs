//! Appending to a journal: the one write that every token goes through.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{AgentStatus, Event, EventBody, JsonText, Sequence, StopReason, Turn, TurnResult};
use tokenrail_ports::{Append, StoreError, TurnStep};

use crate::columns::status_of;
use crate::journal::{BatchWriter, events_between};
use crate::packing::{self, Codec};
use crate::reserve::ReserveUse;
use crate::rows::{MessageRow, rows_of};
use crate::turn_ends;
use crate::writer::{Command, Failure};

pub(crate) const PLACE: &str = "
    SELECT agents.key, agents.status, heads.head, heads.turn, heads.running
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = :id";

const TURN_STATE: &str = "
    SELECT state
    FROM turns
    WHERE agent = :agent AND number = :number";

const ADD_MESSAGE: &str = "
    INSERT INTO agent_messages
        (id, agent_id, sequence_number, first_sequence, type, role, content, raw, metadata, created_at,
         checksum)
    VALUES
        (:id, :agent_id, :sequence, :first_sequence, :type, :role, :content, :raw, :metadata, :created_at,
         :checksum)";

const MOVE_HEAD: &str = "
    UPDATE heads
    SET head = :head, open_from = :open_from, turn = :turn, running = :running,
        spool_offset = :spool_offset, updated_at = :updated_at
    WHERE agent = :agent";

const SET_SESSION: &str = "UPDATE agents SET session_id = :session WHERE key = :agent";

const START_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, state, stop, asked_at, first_sequence, spool_offset)
    VALUES (:agent, :number, :run, :prompt, 'running', :stop, :asked_at, :first_sequence, :spool_offset)
    ON CONFLICT (agent, number) DO UPDATE
    SET state = 'running', first_sequence = excluded.first_sequence, spool_offset = excluded.spool_offset";

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

/// The end of a turn that is not larger may use the room that is kept for that.
const SMALL_END_BYTES: usize = 64 << 10;

/// An append, and what follows in the same transaction. The packing has been done already, by the caller's own
/// thread.
pub(crate) struct AppendCommand {
    append: Append,
    /// One for each part; none where a part breaks the promise of its type.
    prepared: Vec<Option<Prepared>>,
}

struct Prepared {
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
}

/// Where the agent's journal stands.
struct Place {
    agent: i64,
    status: AgentStatus,
    head: Sequence,
    turn: u32,
    running: bool,
}

impl AppendCommand {
    pub(crate) fn new(append: Append) -> Result<Self, StoreError> {
        let prepared = append.parts().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { append, prepared })
    }
}

fn prepare(append: &Append) -> Result<Option<Prepared>, StoreError> {
    if !is_well_formed(append) {
        return Ok(None);
    }
    let rows = rows_of(append.agent, &append.events)?;
    Ok(Some(Prepared { payload: packing::pack(&append.events), rows }))
}

impl Command for AppendCommand {
    type Answer = ();

    fn bytes(&self) -> usize {
        self.prepared.iter().flatten().map(|prepared| prepared.payload.len()).sum()
    }

    fn reserve_use(&self) -> ReserveUse {
        let ends = self.append.parts().any(|part| part.step == TurnStep::End);
        if ends && self.bytes() <= SMALL_END_BYTES { ReserveUse::Ends } else { ReserveUse::None }
    }

    fn run(&self, db: &Connection) -> Result<(), Failure> {
        for (part, (append, prepared)) in self.append.parts().zip(&self.prepared).enumerate() {
            run_part(db, append, prepared.as_ref()).map_err(|failure| match failure {
                // The parts before it have been written.
                Failure::Refused(error) if 0 < part => Failure::Undo(error),
                failure => failure,
            })?;
        }
        Ok(())
    }
}

fn run_part(db: &Connection, append: &Append, prepared: Option<&Prepared>) -> Result<(), Failure> {
    let place = place(db, append)?;
    let conflict = || Failure::Refused(StoreError::Conflict { head: place.head });
    let prepared = prepared.ok_or_else(conflict)?;
    let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else {
        return Err(conflict());
    };
    if first.sequence != place.head.next() {
        let saved = last.sequence <= place.head
            && events_between(db, place.agent, first.sequence, last.sequence).map_err(Failure::Refused)?
                == *append.events;
        return if saved { Ok(()) } else { Err(conflict()) };
    }
    if !can_take(db, &place, append, first)? {
        return Err(conflict());
    }
    write(db, &place, append, prepared, (first, last)).map_err(|error| {
        // A message that is completed twice, or an id that is there already: a bug of whoever appends.
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) {
            Failure::Undo(StoreError::Conflict { head: place.head })
        } else {
            Failure::from(error)
        }
    })
}

fn is_well_formed(append: &Append) -> bool {
    let events = &append.events;
    let consecutive = events.windows(2).all(|pair| {
        pair[0].sequence.next() == pair[1].sequence
            && pair[0].turn == pair[1].turn
            && !matches!(pair[0].body, EventBody::TurnResult(_))
    });
    let starts_right = match &append.step {
        TurnStep::Start(turn) => events.first().is_some_and(|first| first.turn == turn.number),
        TurnStep::Continue | TurnStep::End => true,
    };
    !events.is_empty()
        && consecutive
        && starts_right
        && result_of(append).is_some() == (append.step == TurnStep::End)
}

fn result_of(append: &Append) -> Option<&TurnResult> {
    match &append.events.last()?.body {
        EventBody::TurnResult(result) => Some(result),
        _ => None,
    }
}

fn place(db: &Connection, append: &Append) -> Result<Place, Failure> {
    let mut statement = db.prepare_cached(PLACE)?;
    let place = statement
        .query_row(named_params! { ":id": append.agent.to_string() }, |row| {
            Ok(Place {
                agent: row.get(0)?,
                status: status_of(row, 1)?,
                head: Sequence(row.get::<_, i64>(2)?.unsigned_abs()),
                turn: row.get(3)?,
                running: row.get(4)?,
            })
        })
        .optional()?;
    place.ok_or(Failure::Refused(StoreError::UnknownAgent(append.agent)))
}

/// Whether turn and agent are in a state for it.
fn can_take(db: &Connection, place: &Place, append: &Append, first: &Event) -> Result<bool, Failure> {
    if append.step == TurnStep::Continue {
        return Ok(place.running && place.turn == first.turn.0);
    }
    let mut statement = db.prepare_cached(TURN_STATE)?;
    let state: Option<String> = statement
        .query_row(named_params! { ":agent": place.agent, ":number": first.turn.0 }, |row| row.get(0))
        .optional()?;
    let (open, next) = match (&append.step, result_of(append)) {
        (TurnStep::End, Some(result)) => {
            let this_one = !place.running || place.turn == first.turn.0;
            (this_one && matches!(state.as_deref(), Some("queued" | "running")), result.outcome.status())
        }
        _ => (matches!(state.as_deref(), None | Some("queued")), AgentStatus::Running),
    };
    Ok(open && place.status.transition(next).is_ok())
}

fn write(
    db: &Connection,
    place: &Place,
    append: &Append,
    prepared: &Prepared,
    ends: (&Event, &Event),
) -> rusqlite::Result<()> {
    let (first, last) = ends;
    let journal = BatchWriter { db, agent: place.agent, turn: first.turn };
    journal.add(Codec::Packed, first.sequence, last.sequence, &prepared.payload)?;
    for row in &prepared.rows {
        add_message(db, &append.agent.to_string(), row)?;
    }
    move_head(db, place, append, ends)?;
    if let Some(session) = &append.session {
        db.prepare_cached(SET_SESSION)?
            .execute(named_params! { ":agent": place.agent, ":session": session.as_str() })?;
    }
    if let TurnStep::Start(turn) = &append.step {
        start(db, place.agent, append, turn, first)?;
    }
    match result_of(append) {
        Some(result) => end(db, place.agent, append, result, ends),
        None => Ok(()),
    }
}

fn move_head(
    db: &Connection,
    place: &Place,
    append: &Append,
    (first, last): (&Event, &Event),
) -> rusqlite::Result<()> {
    let running = append.step != TurnStep::End;
    // A turn that ends before it has started is not the newest one that has started.
    let started = running || place.running;
    db.prepare_cached(MOVE_HEAD)?.execute(named_params! {
        ":agent": place.agent,
        ":head": last.sequence.0 as i64,
        ":open_from": append.open_from.map(|first| first.0 as i64),
        ":turn": if started { first.turn.0 } else { place.turn },
        ":running": running,
        ":spool_offset": append.spool_offset as i64,
        ":updated_at": last.at.0,
    })?;
    Ok(())
}

fn start(db: &Connection, agent: i64, append: &Append, turn: &Turn, first: &Event) -> rusqlite::Result<()> {
    db.prepare_cached(START_TURN)?.execute(named_params! {
        ":agent": agent,
        ":number": turn.number.0,
        ":run": turn.run.0,
        ":prompt": turn.prompt,
        ":stop": turn.stop.map(StopReason::as_str),
        ":asked_at": turn.asked_at.0,
        ":first_sequence": first.sequence.0 as i64,
        ":spool_offset": append.spool_offset as i64,
    })?;
    db.prepare_cached(AGENT_STARTS)?.execute(named_params! { ":agent": agent })?;
    Ok(())
}

fn end(
    db: &Connection,
    agent: i64,
    append: &Append,
    result: &TurnResult,
    (first, last): (&Event, &Event),
) -> rusqlite::Result<()> {
    db.prepare_cached(END_TURN)?.execute(named_params! {
        ":agent": agent,
        ":number": first.turn.0,
        ":outcome": result.outcome.as_str(),
        ":first_sequence": first.sequence.0 as i64,
        ":last_sequence": last.sequence.0 as i64,
        ":spool_offset": append.spool_offset as i64,
    })?;
    let error = result.error.as_ref();
    db.prepare_cached(AGENT_ENDS)?.execute(named_params! {
        ":agent": agent,
        ":status": result.outcome.status().as_str(),
        ":ended_at": last.at.0,
        ":usage": result.usage.as_ref().map(JsonText::as_str),
        ":cost_usd": result.cost_usd,
        ":error_class": error.map(|error| error.class.as_str()),
        ":error_code": error.and_then(|error| error.code.as_deref()),
        ":error_text": error.map(|error| &*error.text),
        ":error_retry_after_ms": error.and_then(|error| error.retry_after_ms).map(|ms| ms as i64),
        ":error_recoverable": error.map(|error| error.recoverable),
    })?;
    turn_ends::note(db, agent, Some(first.turn.0))?;
    wait_again(db, agent)
}

/// Where no turn runs and one waits, the agent begins anew.
pub(crate) fn wait_again(db: &Connection, agent: i64) -> rusqlite::Result<()> {
    db.prepare_cached(WAIT_AGAIN)?.execute(named_params! { ":agent": agent })?;
    Ok(())
}

pub(crate) fn add_message(db: &Connection, agent: &str, row: &MessageRow) -> rusqlite::Result<()> {
    let MessageRow { id, sequence, first_sequence, kind, role, content, raw, metadata, created_at, checksum } =
        row;
    db.prepare_cached(ADD_MESSAGE)?.execute(named_params! {
        ":id": id,
        ":agent_id": agent,
        ":sequence": sequence.0 as i64,
        ":first_sequence": first_sequence.map(|first| first.0 as i64),
        ":type": kind,
        ":role": role,
        ":content": content,
        ":raw": raw,
        ":metadata": metadata,
        ":created_at": created_at,
        ":checksum": checksum,
    })?;
    Ok(())
}
