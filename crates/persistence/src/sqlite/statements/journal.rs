//! The table `journal`: batches of events.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tokenrail_domain::{AgentId, Event, Sequence, TurnNumber};
use tokenrail_ports::rules::{EventPage, Flow, SharedLimit};
use tokenrail_ports::{PageLimit, StoreError};

use crate::format::batch::BatchRange;
use crate::format::batch_run::{BatchRun, StoredBatch};
use crate::format::packing::Codec;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{sequence_of, turn_of};

const ADD_BATCH: &str = "
    INSERT INTO journal (agent, first_seq, last_seq, turn, codec, payload, checksum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// The batch that contains `from`, and those that follow.
const BATCHES: &str = "
    SELECT first_seq, last_seq, turn, codec, payload, checksum
    FROM journal
    WHERE agent = :agent
      AND coalesce((SELECT max(first_seq) FROM journal WHERE agent = :agent AND first_seq <= :from), 0)
          <= first_seq
      AND first_seq <= :to
    ORDER BY first_seq";

const AGENT_KEY: &str = "SELECT key FROM agents WHERE id = :id";

/// Writes batches of one turn.
pub(crate) struct BatchWriter<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) agent: i64,
    pub(crate) turn: TurnNumber,
}

impl BatchWriter<'_> {
    pub(crate) fn add(
        &self,
        codec: Codec,
        first: Sequence,
        last: Sequence,
        payload: &[u8],
    ) -> rusqlite::Result<()> {
        let range = BatchRange { agent: self.agent, first, last, turn: self.turn };
        // Bound by position: looking up a name for each value takes longer than binding it.
        self.db.prepare_cached(ADD_BATCH)?.execute((
            self.agent,
            first.0 as i64,
            last.0 as i64,
            self.turn.0,
            codec as i64,
            payload,
            range.checksum(codec as i64, payload).sum(),
        ))?;
        Ok(())
    }
}

/// The key of an agent, as other tables refer to it.
pub(crate) fn agent_key(db: &Connection, id: AgentId) -> Result<i64, StoreError> {
    let mut statement = db.prepare_cached(AGENT_KEY).map_err(store_error)?;
    let key = statement
        .query_row(named_params! { ":id": id.to_string() }, |row| row.get(0))
        .optional()
        .map_err(store_error)?;
    key.ok_or(StoreError::UnknownAgent(id))
}

/// The events `first ..= last`, as far as they exist.
pub(crate) fn events_between(
    db: &Connection,
    agent: i64,
    first: Sequence,
    last: Sequence,
) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::new();
    for_each_between(db, agent, (first, last), |event| {
        events.push(event);
        Flow::More
    })?;
    Ok(events)
}

/// As many of the events after `after` as fit, but at least one.
pub(crate) fn events_after(
    db: &Connection,
    agent: i64,
    after: Sequence,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let mut page = EventPage::new(limit);
    for_each_between(db, agent, (Sequence(after.0.saturating_add(1)), Sequence(u64::MAX)), |event| {
        page.offer(event)
    })?;
    Ok(page.events)
}

/// The events of several agents, each after its number.
pub(crate) fn events_of_many(
    db: &Connection,
    wanted: &[(AgentId, Sequence)],
    limit: PageLimit,
) -> Result<Vec<(AgentId, Vec<Event>)>, StoreError> {
    let mut left = SharedLimit::new(limit);
    let mut read = Vec::new();
    for &(agent, after) in wanted {
        let Some(limit) = left.next_page() else { break };
        let events = match agent_key(db, agent) {
            Ok(key) => events_after(db, key, after, limit)?,
            Err(StoreError::UnknownAgent(_)) => continue,
            Err(error) => return Err(error),
        };
        left.take(&events);
        if !events.is_empty() {
            read.push((agent, events));
        }
    }
    Ok(read)
}

/// Passes the events `range.0 ..= range.1` in order to `take`, until it has enough.
pub(crate) fn for_each_between(
    db: &Connection,
    agent: i64,
    range: (Sequence, Sequence),
    mut take: impl FnMut(Event) -> Flow,
) -> Result<(), StoreError> {
    let mut run = BatchRun::new(range);
    let (from, to) = run.range();
    let mut statement = db.prepare_cached(BATCHES).map_err(store_error)?;
    let mut rows =
        statement.query(named_params! { ":agent": agent, ":from": from, ":to": to }).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        if run.open(batch_of(row, agent)?, &mut take)? == Flow::Enough {
            break;
        }
    }
    Ok(())
}

/// A row of `first_seq, last_seq, turn, codec, payload, checksum`.
pub(crate) fn batch_of(row: &Row<'_>, agent: i64) -> Result<StoredBatch, StoreError> {
    let read = || -> rusqlite::Result<StoredBatch> {
        let (first, last) = (sequence_of(row, 0)?, sequence_of(row, 1)?);
        let range = BatchRange { agent, first, last, turn: turn_of(row, 2)? };
        Ok(StoredBatch { range, codec: row.get(3)?, payload: row.get(4)?, checksum: row.get(5)? })
    };
    read().map_err(store_error)
}
