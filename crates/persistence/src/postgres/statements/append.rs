//! Appending to a journal: the one write that every token goes through.
//!
//! Most appends go by [`move_heads`], which saves those of many agents at once. All others, and those that it does not
//! take, go alone: see [`save_alone`].

use tokenrail_domain::{AgentId, CommitId, Event, StopReason, Turn, TurnResult};
use tokenrail_ports::rules::{self, AppendDecision, JournalState, NewEvents};
use tokenrail_ports::{Append, StoreError, TurnStep};
use tokio_postgres::Error;

use crate::format::batch::BatchRange;
use crate::format::images;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::heads::{Journal, lock_known, phase_of, place};
use crate::postgres::statements::journal::{FetchLimit, add_batch, events_between};
use crate::postgres::statements::latest_result::LatestResult;
use crate::postgres::statements::message_row::{MessageColumns, add_messages};
use crate::postgres::statements::turn_ends;

/// The epoch of every agent, as long as there is one node.
pub(crate) const EPOCH: i64 = 1;

/// Saves the appends of many agents. The row in `heads` is the only lock: an append that comes late finds another epoch
/// or head, and moves nothing. Returns the agents whose appends are saved.
const MOVE_HEADS: &str = "
    WITH input AS (
        SELECT *
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::smallint[], $10::bigint[], $11::bytea[])
            AS input (agent, epoch, first_seq, last_seq, turn, open_from, spool_offset, at, codec, checksum, payload)
    ), moved AS (
        UPDATE heads
        SET head = input.last_seq, open_from = input.open_from, spool_offset = input.spool_offset,
            updated_at = input.at
        FROM input
        WHERE heads.agent = input.agent AND heads.epoch = input.epoch AND heads.head = input.first_seq - 1
            AND heads.running AND heads.turn = input.turn
        RETURNING heads.agent
    ), added AS (
        INSERT INTO journal (agent, first_seq, last_seq, turn, codec, checksum, payload)
        SELECT input.agent, first_seq, last_seq, turn, codec, checksum, payload
        FROM input
        JOIN moved ON moved.agent = input.agent
    ), said AS (
        INSERT INTO agent_messages
            (agent, sequence_number, id, first_sequence, type, role, content, raw, metadata, created_at, checksum)
        SELECT row.*
        FROM unnest($12::bigint[], $13::bigint[], $14::uuid[], $15::bigint[], $16::text[], $17::text[],
            $18::bytea[], $19::bytea[], $20::bytea[], $21::bigint[], $22::bigint[])
            AS row (agent, sequence_number, id, first_sequence, type, role, content, raw, metadata, created_at, checksum)
        JOIN moved ON moved.agent = row.agent
    )
    SELECT agent FROM moved";

const MOVE_HEAD: &str = "
    UPDATE heads
    SET head = $2, open_from = $3, turn = $4, running = $5, spool_offset = $6, updated_at = $7
    WHERE agent = $1";

/// Puts an archived agent back into the lists.
pub(super) const UNARCHIVE: &str = "UPDATE agents SET archived = false WHERE key = $1 AND archived";

const SET_SESSION: &str = "UPDATE agents SET session_id = $2 WHERE key = $1";

const START_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, stop, asked_at, first_sequence, spool_offset,
        base_commit)
    VALUES ($1, $2, $3, $4, $5, 'running', $6, $7, $8, $9, $10)
    ON CONFLICT (agent, number) DO UPDATE
    SET state = 'running', first_sequence = excluded.first_sequence, spool_offset = excluded.spool_offset,
        base_commit = excluded.base_commit";

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

/// An append with those that are chained to it (`Append::then`). Its events are packed on the caller's thread.
pub(crate) struct PreparedAppend {
    pub(crate) append: Append,
    /// One for each part; `None` if a part is not well-formed.
    parts: Vec<Option<PreparedPart>>,
}

struct PreparedPart {
    codec: Codec,
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
}

/// What became of an append that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    Now,
    /// An earlier try had saved it.
    Before,
}

impl PreparedAppend {
    pub(crate) fn new(append: Append) -> Result<Self, StoreError> {
        let parts = append.parts().map(PreparedPart::of).collect::<Result<_, _>>()?;
        Ok(Self { append, parts })
    }

    pub(crate) fn agent(&self) -> AgentId {
        self.append.agent
    }

    /// How many bytes it sends, about.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().flatten().map(PreparedPart::bytes).sum()
    }

    /// Whether it changes nothing but the journal and its head, so that it may go with those of other agents.
    pub(crate) fn goes_with_others(&self) -> bool {
        let Append { agent: _, events: _, step, spool_offset: _, session, open_from: _, then } = &self.append;
        *step == TurnStep::Continue
            && then.is_none()
            && session.is_none()
            && !rules::needs_user(&self.append)
            && matches!(self.parts[..], [Some(_)])
    }
}

impl PreparedPart {
    fn of(append: &Append) -> Result<Option<Self>, StoreError> {
        if !rules::is_well_formed(append) {
            return Ok(None);
        }
        let rows = rows_of(append.agent, &append.events)?;
        let (codec, payload) =
            packing::pack_quick(&append.events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Some(Self { codec, payload, rows }))
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| {
            row.content.len() + row.metadata.len() + row.raw.as_ref().map_or(0, bytes::Bytes::len)
        });
        self.payload.len() + rows.sum::<usize>()
    }
}

/// Appends of several agents, column by column.
#[derive(Default)]
struct BatchColumns<'a> {
    agents: Vec<i64>,
    epochs: Vec<i64>,
    first: Vec<i64>,
    last: Vec<i64>,
    turns: Vec<i32>,
    open_from: Vec<Option<i64>>,
    spool_offsets: Vec<i64>,
    at: Vec<i64>,
    codecs: Vec<i16>,
    checksums: Vec<i64>,
    payloads: Vec<&'a [u8]>,
}

impl<'a> BatchColumns<'a> {
    fn add(&mut self, agent: i64, append: &'a Append, part: &'a PreparedPart) {
        let (Some(first), Some(last)) = (append.events.first(), append.events.last()) else { return };
        let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
        let checksum = range.checksum(part.codec as i64, &part.payload).sum();
        self.agents.push(agent);
        self.epochs.push(EPOCH);
        self.first.push(first.sequence.0 as i64);
        self.last.push(last.sequence.0 as i64);
        self.turns.push(int(first.turn.0));
        self.open_from.push(append.open_from.map(|first| first.0 as i64));
        self.spool_offsets.push(append.spool_offset as i64);
        self.at.push(last.at.0);
        self.codecs.push(part.codec as i16);
        self.checksums.push(i64::from(checksum));
        self.payloads.push(&part.payload);
    }
}

/// Saves appends that may go together, with the keys of their agents. Each agent has one of them, and they are in the
/// order of their keys. Returns the keys of those that are saved. The statement commits by itself.
pub(crate) async fn move_heads(
    db: &Link,
    appends: &[(i64, &PreparedAppend)],
) -> Result<Vec<i64>, QueryFailure> {
    let (mut batches, mut rows) = (BatchColumns::default(), MessageColumns::default());
    for (agent, prepared) in appends {
        if let [Some(part)] = &prepared.parts[..] {
            batches.add(*agent, &prepared.append, part);
            rows.add(*agent, &part.rows)?;
        }
    }
    let moved = db
        .rows(
            MOVE_HEADS,
            &[
                &batches.agents,
                &batches.epochs,
                &batches.first,
                &batches.last,
                &batches.turns,
                &batches.open_from,
                &batches.spool_offsets,
                &batches.at,
                &batches.codecs,
                &batches.checksums,
                &batches.payloads,
                &rows.agents,
                &rows.sequences,
                &rows.ids,
                &rows.first_sequences,
                &rows.types,
                &rows.roles,
                &rows.contents,
                &rows.raws,
                &rows.metadata,
                &rows.created_at,
                &rows.checksums,
            ],
        )
        .await?;
    Ok(moved.iter().map(|row| row.try_get(0)).collect::<Result<_, Error>>()?)
}

/// Saves one append, with those that are chained to it. `db` is in a transaction.
pub(crate) async fn save_alone(
    db: &Link,
    prepared: &PreparedAppend,
    fetch: FetchLimit,
) -> Result<Appended, QueryFailure> {
    lock_known(db, prepared.agent()).await?;
    let mut appended = Appended::Before;
    for (append, part) in prepared.append.parts().zip(&prepared.parts) {
        if save_part(db, append, part.as_ref(), fetch).await? == Appended::Now {
            appended = Appended::Now;
        }
    }
    Ok(appended)
}

async fn save_part(
    db: &Link,
    append: &Append,
    part: Option<&PreparedPart>,
    fetch: FetchLimit,
) -> Result<Appended, QueryFailure> {
    let Journal { agent, state } = place(db, append.agent).await?;
    let conflict = || QueryFailure::Refused(StoreError::Conflict { head: state.head });
    let (Some(part), Some(first)) = (part, append.events.first()) else { return Err(conflict()) };
    let phase = match append.step {
        TurnStep::Continue => None,
        TurnStep::Start(_) | TurnStep::End => phase_of(db, agent, first.turn).await?,
    };
    match state.admit(append, |_| Ok::<_, StoreError>(phase))? {
        AppendDecision::Refuse => Err(conflict()),
        AppendDecision::Compare { first, last } => {
            let stored = events_between(db, agent, (first, last), fetch).await?;
            if stored == *append.events { Ok(Appended::Before) } else { Err(conflict()) }
        }
        AppendDecision::Write(new) => {
            // A message that is completed twice, or an id that exists already: a bug of the caller.
            let written = write(db, agent, append, part, new).await;
            written.map(|()| Appended::Now).map_err(|failure| failure.if_taken(conflict))
        }
    }
}

async fn write(
    db: &Link,
    agent: i64,
    append: &Append,
    part: &PreparedPart,
    new: NewEvents<'_>,
) -> Result<(), QueryFailure> {
    let NewEvents { first, last, result, after } = new;
    let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
    add_batch(db, range, part.codec, &part.payload).await?;
    add_messages(db, agent, &part.rows).await?;
    move_head(db, agent, append, (after, last)).await?;
    if let Some(session) = &append.session {
        db.run(SET_SESSION, &[&agent, &session.as_str().as_bytes()]).await?;
    }
    if rules::needs_user(append) {
        db.run(UNARCHIVE, &[&agent]).await?;
    }
    if let TurnStep::Start(turn) = &append.step {
        start(db, agent, append, turn, first).await?;
    }
    match result {
        Some(result) => end(db, agent, append, result, new).await,
        None => Ok(()),
    }
}

async fn move_head(
    db: &Link,
    agent: i64,
    append: &Append,
    (after, last): (JournalState, &Event),
) -> Result<(), QueryFailure> {
    let JournalState { status: _, head, turn, running } = after;
    let open_from = append.open_from.map(|first| first.0 as i64);
    let (head, spool_offset) = (head.0 as i64, append.spool_offset as i64);
    db.run(MOVE_HEAD, &[&agent, &head, &open_from, &int(turn.0), &running, &spool_offset, &last.at.0])
        .await?;
    Ok(())
}

async fn start(
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
    db.run(AGENT_STARTS, &[&agent]).await?;
    Ok(())
}

async fn end(
    db: &Link,
    agent: i64,
    append: &Append,
    result: &TurnResult,
    NewEvents { first, last, after, .. }: NewEvents<'_>,
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
    let status = after.status.as_str();
    LatestResult::from(result).save(db, AGENT_ENDS, &[&agent, &status, &last.at.0]).await?;
    turn_ends::note(db, agent, Some(int(first.turn.0))).await?;
    wait_again(db, agent).await
}

/// `rules::begins_again` as a statement: whether a turn is queued.
pub(crate) async fn wait_again(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(WAIT_AGAIN, &[&agent]).await?;
    Ok(())
}
