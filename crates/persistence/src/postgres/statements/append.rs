//! Appending to a journal: the one write that every token goes through.
//!
//! Most appends go by [`move_heads`], which saves those of many agents at once. All others, and those that it does not
//! take, go alone: see [`save_alone`].

use std::future::Future;
use std::pin::Pin;

use futures_util::future::join_all;
use tokenrail_domain::{AgentId, CommitId, Event, SessionId, StopReason, Turn, TurnNumber, TurnResult};
use tokenrail_ports::rules::{self, AppendDecision, JournalState, NewEvents};
use tokenrail_ports::{Append, StoreError, TurnStep};
use tokio_postgres::Error;

use crate::format::batch::BatchRange;
use crate::format::images;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::postgres::database::link::{ChangeFailure, Link};
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::heads::{self, Journal};
use crate::postgres::statements::journal::{ADD_BATCH, FetchLimit, add_batch, events_between};
use crate::postgres::statements::latest_result::LatestResult;
use crate::postgres::statements::message_row::{ADD_MESSAGES, MessageColumns, add_messages};
use crate::postgres::statements::{ownership, turn_ends};

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

const UNARCHIVE: &str = "UPDATE agents SET archived = false WHERE key = $1 AND archived";

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
        let Append { agent: _, epoch: _, events: _, step, spool_offset: _, session, open_from: _, then } =
            &self.append;
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
        self.epochs.push(append.epoch.0 as i64);
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

/// Saves one append, with those that are chained to it, in a transaction: three round trips for an append that is not
/// chained.
pub(crate) async fn save_alone(
    db: &Link,
    prepared: &PreparedAppend,
    fetch: FetchLimit,
) -> Result<Appended, ChangeFailure> {
    let first = &prepared.append;
    let place = heads::lock_place(db, first.agent, turn_of(first));
    db.change_after(place, async |place| {
        let mut appended = Appended::Before;
        let mut place = Some(place);
        for (append, part) in prepared.append.parts().zip(&prepared.parts) {
            let journal = match place.take() {
                Some(journal) => journal,
                // The part before has changed it.
                None => heads::place(db, append.agent, turn_of(append)).await?,
            };
            if save_part(db, journal, append, part.as_ref(), fetch).await? == Appended::Now {
                appended = Appended::Now;
            }
        }
        Ok(appended)
    })
    .await
}

/// The turn of its events.
fn turn_of(append: &Append) -> TurnNumber {
    append.events.first().map_or(TurnNumber(0), |first| first.turn)
}

async fn save_part(
    db: &Link,
    journal: Journal,
    append: &Append,
    part: Option<&PreparedPart>,
    fetch: FetchLimit,
) -> Result<Appended, QueryFailure> {
    let Journal { agent, state, phase } = journal;
    let conflict = || QueryFailure::Refused(StoreError::Conflict { head: state.head });
    let refused = || QueryFailure::Refused(state.refusal(append));
    let Some(part) = part else { return Err(conflict()) };
    match state.admit(append, |_| Ok::<_, StoreError>(phase))? {
        AppendDecision::Refuse => Err(refused()),
        AppendDecision::Compare { first, last } => {
            let stored = events_between(db, agent, (first, last), fetch).await?;
            if stored == *append.events { Ok(Appended::Before) } else { Err(refused()) }
        }
        AppendDecision::Write(new) => {
            // A message that is completed twice, or an id that exists already: a bug of the caller.
            let written = write(db, agent, append, part, new).await;
            written.map(|()| Appended::Now).map_err(|failure| failure.if_taken(conflict))
        }
    }
}

/// The statements of an append that goes alone. They must be prepared, so that the steps of [`write`] are sent in order.
pub(crate) fn statements() -> Vec<&'static str> {
    let own = [
        MOVE_HEADS,
        MOVE_HEAD,
        UNARCHIVE,
        SET_SESSION,
        START_TURN,
        AGENT_STARTS,
        END_TURN,
        AGENT_ENDS,
        WAIT_AGAIN,
        ADD_BATCH,
        ADD_MESSAGES,
    ];
    [&own[..], &heads::OF_A_PLACE, &turn_ends::OF_A_NOTE, &ownership::OF_AN_APPEND].concat()
}

/// Sends all statements, and then waits for their answers.
async fn write(
    db: &Link,
    agent: i64,
    append: &Append,
    part: &PreparedPart,
    new: NewEvents<'_>,
) -> Result<(), QueryFailure> {
    let NewEvents { first, last, result, after } = new;
    let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
    let mut steps: Vec<Step<'_>> = vec![
        Box::pin(add_batch(db, range, part.codec, &part.payload)),
        Box::pin(add_messages(db, agent, &part.rows)),
        Box::pin(move_head(db, agent, append, (after, last))),
    ];
    if let Some(session) = &append.session {
        steps.push(Box::pin(set_session(db, agent, session)));
    }
    if rules::needs_user(append) {
        steps.push(Box::pin(unarchive(db, agent)));
    }
    if let TurnStep::Start(turn) = &append.step {
        steps.push(Box::pin(start_turn(db, agent, append, turn, first)));
        steps.push(Box::pin(agent_starts(db, agent)));
        steps.push(Box::pin(ownership::keep(db, agent)));
    }
    if let Some(result) = result {
        steps.push(Box::pin(end_turn(db, agent, append, result, (first, last))));
        steps.push(Box::pin(agent_ends(db, agent, result, (after, last))));
        steps.push(Box::pin(turn_ends::note(db, agent, Some(int(first.turn.0)))));
        steps.push(Box::pin(wait_again(db, agent)));
        steps.push(Box::pin(ownership::release(db, agent)));
    }
    // The first failure is the cause of those that follow.
    join_all(steps).await.into_iter().collect()
}

type Step<'a> = Pin<Box<dyn Future<Output = Result<(), QueryFailure>> + Send + 'a>>;

async fn move_head(
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

async fn set_session(db: &Link, agent: i64, session: &SessionId) -> Result<(), QueryFailure> {
    db.run(SET_SESSION, &[&agent, &session.as_str().as_bytes()]).await?;
    Ok(())
}

async fn start_turn(
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

async fn agent_starts(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(AGENT_STARTS, &[&agent]).await?;
    Ok(())
}

async fn end_turn(
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

async fn agent_ends(
    db: &Link,
    agent: i64,
    result: &TurnResult,
    (after, last): (JournalState, &Event),
) -> Result<(), QueryFailure> {
    let status = after.status.as_str();
    LatestResult::from(result).save(db, AGENT_ENDS, &[&agent, &status, &last.at.0]).await
}

/// Puts an archived agent back into the lists. Returns whether it was archived.
pub(crate) async fn unarchive_if_archived(db: &Link, agent: i64) -> Result<bool, QueryFailure> {
    Ok(0 < db.run(UNARCHIVE, &[&agent]).await?)
}

async fn unarchive(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    unarchive_if_archived(db, agent).await.map(drop)
}

/// `rules::begins_again` as a statement: whether a turn is queued.
pub(crate) async fn wait_again(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(WAIT_AGAIN, &[&agent]).await?;
    Ok(())
}
