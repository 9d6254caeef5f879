//! The table `journal`: batches of events.

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::rules::{EventPage, Flow};
use tokenrail_ports::{PageLimit, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::format::batch::BatchRange;
use crate::format::batch_run::{BatchRun, StoredBatch};
use crate::format::packing::Codec;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{agent_id_of, checksum_of, column, int, sequence_of, turn_of};

pub(super) const ADD_BATCH: &str = "
    INSERT INTO journal (agent, first_seq, last_seq, turn, codec, checksum, payload)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Batches of the agent `$1` that meet a condition: at most `$4` of them, and no further one after `$5` bytes.
macro_rules! batches_where {
    ($condition:literal) => {
        concat!(
            "
    SELECT first_seq, last_seq, turn, codec, checksum, payload
    FROM (
        SELECT first_seq, last_seq, turn, codec, checksum, payload,
            sum(octet_length(payload)) OVER (ORDER BY first_seq) - octet_length(payload) AS bytes_before
        FROM journal
        WHERE agent = $1 AND ",
            $condition,
            "
        ORDER BY first_seq
        LIMIT $4
    ) AS batches
    WHERE bytes_before < $5
    ORDER BY first_seq"
        )
    };
}
pub(super) use batches_where;

/// The batch that contains `$2`, and those that follow up to `$3`.
const BATCHES: &str = batches_where!(
    "coalesce((SELECT max(first_seq) FROM journal WHERE agent = $1 AND first_seq <= $2), 0) <= first_seq
            AND first_seq <= $3"
);

const AGENT_KEY: &str = "SELECT key FROM agents WHERE id = $1";

const AGENT_KEYS: &str = "SELECT id, key FROM agents WHERE id = ANY ($1)";

/// How much to fetch at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimit {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl FetchLimit {
    /// No more than a page can take.
    pub(crate) fn for_page(self, page: PageLimit) -> Self {
        Self {
            rows: self.rows.min(page.events.saturating_add(1)),
            bytes: self.bytes.min(page.bytes.saturating_add(1)),
        }
    }

    pub(crate) fn as_numbers(self) -> (i64, i64) {
        let number = |size: usize| i64::try_from(size.max(1)).unwrap_or(i64::MAX);
        (number(self.rows), number(self.bytes))
    }
}

/// Adds a batch.
pub(crate) async fn add_batch(
    db: &Link,
    range: BatchRange,
    codec: Codec,
    payload: &[u8],
) -> Result<(), QueryFailure> {
    let BatchRange { agent, first, last, turn } = range;
    let checksum = i64::from(range.checksum(codec as i64, payload).sum());
    db.run(
        ADD_BATCH,
        &[&agent, &(first.0 as i64), &(last.0 as i64), &int(turn.0), &(codec as i16), &checksum, &payload],
    )
    .await?;
    Ok(())
}

/// The key of an agent, as other tables refer to it.
pub(crate) async fn agent_key(db: &Link, id: AgentId) -> Result<i64, QueryFailure> {
    let row = db.row(AGENT_KEY, &[&id.as_uuid()]).await?.ok_or(StoreError::UnknownAgent(id))?;
    Ok(column(&row, 0)?)
}

/// The keys of those agents that exist.
pub(crate) async fn agent_keys(db: &Link, ids: &[AgentId]) -> Result<Vec<(AgentId, i64)>, QueryFailure> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let rows = db.rows(AGENT_KEYS, &[&ids]).await?;
    Ok(rows
        .iter()
        .map(|row| Ok((agent_id_of(row, 0)?, column(row, 1)?)))
        .collect::<Result<_, StoreError>>()?)
}

/// The events `first ..= last`, as far as they exist.
pub(crate) async fn events_between(
    db: &Link,
    agent: i64,
    range: (Sequence, Sequence),
    fetch: FetchLimit,
) -> Result<Vec<Event>, QueryFailure> {
    let mut events = Vec::new();
    for_each_between(db, agent, range, fetch, |event| {
        events.push(event);
        Flow::More
    })
    .await?;
    Ok(events)
}

/// As many of the events after `after` as fit, but at least one.
pub(crate) async fn events_after(
    db: &Link,
    agent: i64,
    after: Sequence,
    limit: PageLimit,
    fetch: FetchLimit,
) -> Result<Vec<Event>, QueryFailure> {
    let mut page = EventPage::new(limit);
    let range = (Sequence(after.0.saturating_add(1)), Sequence(u64::MAX));
    for_each_between(db, agent, range, fetch.for_page(limit), |event| page.offer(event)).await?;
    Ok(page.events)
}

/// Passes the events `range.0 ..= range.1` in order to `take`, until it has enough.
pub(crate) async fn for_each_between(
    db: &Link,
    agent: i64,
    range: (Sequence, Sequence),
    fetch: FetchLimit,
    mut take: impl FnMut(Event) -> Flow,
) -> Result<(), QueryFailure> {
    let mut run = BatchRun::new(range);
    let (row_limit, byte_limit) = fetch.as_numbers();
    loop {
        let (from, to) = run.range();
        let rows = db.rows(BATCHES, &[&agent, &from, &to, &row_limit, &byte_limit]).await?;
        let mut bytes = 0;
        let is_last = (rows.len() as i64) < row_limit;
        for row in rows {
            let batch = batch_of(&row, agent)?;
            bytes += batch.payload.len() as i64;
            if run.open(batch, &mut take)? == Flow::Enough {
                return Ok(());
            }
        }
        // If neither limit was reached, there are no further batches.
        if is_last && bytes < byte_limit {
            return Ok(());
        }
        run = run.rest();
        if run.range().0 == from {
            // The last batch, again.
            return Ok(());
        }
    }
}

/// A row of `first_seq, last_seq, turn, codec, checksum, payload`.
pub(crate) fn batch_of(row: &Row, agent: i64) -> Result<StoredBatch, StoreError> {
    let range =
        BatchRange { agent, first: sequence_of(row, 0)?, last: sequence_of(row, 1)?, turn: turn_of(row, 2)? };
    Ok(StoredBatch {
        range,
        codec: column::<i16>(row, 3)?.into(),
        checksum: Some(checksum_of(row, 4)?),
        payload: column(row, 5)?,
    })
}
