//! The table `journal`: batches of events.

mod weight;

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tokenrail_domain::{AgentId, Event, Sequence, TurnNumber};
use tokenrail_ports::{PageLimit, StoreError};

use crate::checksum::Checksum;
use crate::columns::{sequence_of, turn_of};
use crate::error::store_error;
use crate::packing::{self, Codec, Malformed, Unpacked};

const ADD_BATCH: &str = "
    INSERT INTO journal (agent, first_seq, last_seq, turn, codec, payload, checksum)
    VALUES (:agent, :first, :last, :turn, :codec, :payload, :checksum)";

/// The batch in which `from` lies, and those that follow.
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
        self.db.prepare_cached(ADD_BATCH)?.execute(named_params! {
            ":agent": self.agent,
            ":first": first.0 as i64,
            ":last": last.0 as i64,
            ":turn": self.turn.0,
            ":codec": codec as i64,
            ":payload": payload,
            ":checksum": checksum_of(self.agent, (first, last), self.turn, codec as i64, payload).sum(),
        })?;
        Ok(())
    }
}

/// The key of an agent in the other tables.
pub(crate) fn agent_key(db: &Connection, id: AgentId) -> Result<i64, StoreError> {
    let mut statement = db.prepare_cached(AGENT_KEY).map_err(store_error)?;
    let key = statement
        .query_row(named_params! { ":id": id.to_string() }, |row| row.get(0))
        .optional()
        .map_err(store_error)?;
    key.ok_or(StoreError::UnknownAgent(id))
}

/// The events `first ..= last`, as far as there are.
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
    let mut page = PageOfEvents::new(limit);
    for_each_between(db, agent, (Sequence(after.0.saturating_add(1)), LAST), |event| page.offer(event))?;
    Ok(page.events)
}

/// No event has a greater number: it is what SQLite can store.
const LAST: Sequence = Sequence(i64::MAX as u64);

/// Whether more is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Enough,
}

/// Gives the events `range.0 ..= range.1` in order to `take`, until it has enough.
pub(crate) fn for_each_between(
    db: &Connection,
    agent: i64,
    range: (Sequence, Sequence),
    mut take: impl FnMut(Event) -> Flow,
) -> Result<(), StoreError> {
    let (from, to) = (range.0.min(LAST), range.1.min(LAST));
    let mut statement = db.prepare_cached(BATCHES).map_err(store_error)?;
    let mut rows = statement
        .query(named_params! { ":agent": agent, ":from": from.0 as i64, ":to": to.0 as i64 })
        .map_err(store_error)?;
    let mut next = None;
    while let Some(row) = rows.next().map_err(store_error)? {
        let (first, last) = ends_of(row).map_err(store_error)?;
        let follows = next.map_or(first <= from, |next| first == next);
        if !follows {
            return Err(StoreError::Corrupt(format!("batch {first}: what comes before it is missing")));
        }
        next = Some(last.next());
        for event in unpack_row(row, agent)? {
            let event = event.map_err(|error| broken(row, error))?;
            if to < event.sequence {
                return Ok(());
            }
            if from <= event.sequence && take(event) == Flow::Enough {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Opens a row of `first_seq, last_seq, turn, codec, payload, checksum`.
pub(crate) fn unpack_row(row: &Row<'_>, agent: i64) -> Result<Unpacked, StoreError> {
    let (first, last) = ends_of(row).map_err(store_error)?;
    let turn = turn_of(row, 2).map_err(store_error)?;
    let number = row.get(3).map_err(store_error)?;
    let payload: Vec<u8> = row.get(4).map_err(store_error)?;
    checksum_of(agent, (first, last), turn, number, &payload).check(row, 5, || format!("batch {first}"))?;
    let codec = Codec::from_number(number)
        .ok_or_else(|| StoreError::Corrupt(format!("batch {first}: its codec is not known")))?;
    packing::unpack(codec, first, turn, payload).map_err(|error| broken(row, error))
}

fn ends_of(row: &Row<'_>) -> rusqlite::Result<(Sequence, Sequence)> {
    Ok((sequence_of(row, 0)?, sequence_of(row, 1)?))
}

fn checksum_of(
    agent: i64,
    (first, last): (Sequence, Sequence),
    turn: TurnNumber,
    codec: i64,
    payload: &[u8],
) -> Checksum {
    let place = Checksum::new().number(agent).number(first.0 as i64).number(last.0 as i64);
    place.number(i64::from(turn.0)).number(codec).bytes(payload)
}

fn broken(row: &Row<'_>, error: Malformed) -> StoreError {
    match sequence_of(row, 0) {
        Ok(first) => StoreError::Corrupt(format!("batch {first}: {error}")),
        Err(error) => store_error(error),
    }
}

/// Collects events until a limit is reached.
pub(crate) struct PageOfEvents {
    pub(crate) events: Vec<Event>,
    limit: PageLimit,
    bytes: usize,
}

impl PageOfEvents {
    pub(crate) fn new(limit: PageLimit) -> Self {
        Self { events: Vec::new(), limit, bytes: 0 }
    }

    /// Takes the event if it fits; the first always does.
    pub(crate) fn offer(&mut self, event: Event) -> Flow {
        self.bytes = self.bytes.saturating_add(weight::of(&event));
        let full = self.limit.events <= self.events.len() || self.limit.bytes < self.bytes;
        if full && !self.events.is_empty() {
            return Flow::Enough;
        }
        self.events.push(event);
        Flow::More
    }
}
