//! The events of many agents, read in one statement.

use std::iter::Peekable;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::rules::{EventPage, Flow, SharedLimit};
use tokenrail_ports::{PageLimit, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::format::batch_run::BatchRun;
use crate::planted::{PostgresBug, is_planted};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::column;
use crate::postgres::statements::journal::{FetchLimit, batch_of};

/// For each agent, the batch that contains the number after `after`, and those that follow: all in one view of the
/// database, so that compaction cannot hide any. At most `$3` batches, and no further one after `$4` bytes.
const BATCHES: &str = "
    SELECT first_seq, last_seq, turn, codec, checksum, payload, agent, place
    FROM (
        SELECT found.*, agents.key AS agent, wanted.place,
            sum(octet_length(payload)) OVER (ORDER BY wanted.place, first_seq) - octet_length(payload) AS bytes_before
        FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS wanted (id, after, place)
        JOIN agents ON agents.id = wanted.id
        CROSS JOIN LATERAL (
            SELECT first_seq, last_seq, turn, codec, checksum, payload
            FROM journal
            WHERE journal.agent = agents.key AND wanted.after < last_seq
                AND coalesce((
                    SELECT max(before.first_seq)
                    FROM journal AS before
                    WHERE before.agent = agents.key AND before.first_seq <= wanted.after + 1
                ), 0) <= first_seq
            ORDER BY first_seq
            LIMIT $3
        ) AS found
        ORDER BY wanted.place, first_seq
        LIMIT $3
    ) AS batches
    WHERE bytes_before < $4
    ORDER BY place, first_seq";

/// The events of each agent after its number. Agents that are unknown or have nothing new are left out.
pub(crate) async fn events_of_many(
    db: &Link,
    wanted: &[(AgentId, Sequence)],
    limit: PageLimit,
    fetch: FetchLimit,
) -> Result<Vec<(AgentId, Vec<Event>)>, QueryFailure> {
    let ids: Vec<Uuid> = wanted.iter().map(|(id, _)| id.as_uuid()).collect();
    // One less than the highest number, so that the next one is a number too.
    let number = |after: &Sequence| i64::try_from(after.0).unwrap_or(i64::MAX).min(i64::MAX - 1);
    let afters: Vec<i64> = wanted.iter().map(|(_, after)| number(after)).collect();
    let (rows, bytes) = fetch.for_page(limit).as_numbers();
    let rows = db.rows(BATCHES, &[&ids, &afters, &rows, &bytes]).await?;
    let (mut rows, mut left, mut read) = (rows.into_iter().peekable(), SharedLimit::new(limit), Vec::new());
    while let Some(first) = rows.peek() {
        let Some(limit) = left.next_page() else { break };
        let place = place_of(first)?;
        let at = usize::try_from(place - 1).ok().and_then(|at| wanted.get(at));
        let Some(&(agent, after)) = at else { break };
        let events = page_of(&mut rows, place, after, limit)?;
        left.take(&events);
        if !events.is_empty() {
            read.push((agent, events));
        }
    }
    Ok(read)
}

/// As many events of the agent at this place as fit. Takes all its rows.
fn page_of(
    rows: &mut Peekable<impl Iterator<Item = Row>>,
    place: i64,
    after: Sequence,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let mut page = EventPage::new(limit);
    let mut run = BatchRun::new((Sequence(after.0.saturating_add(1)), Sequence(u64::MAX)));
    let mut flow = Flow::More;
    while let Some(next) = rows.peek()
        && place_of(next)? == place
        && let Some(row) = rows.next()
    {
        let is_skipped =
            is_planted(PostgresBug::GatherSkipsCompacted) && column::<i64>(&row, 0)? <= after.0 as i64;
        if flow == Flow::More && !is_skipped {
            flow = run.open(batch_of(&row, column(&row, 6)?)?, &mut |event| page.offer(event))?;
        }
    }
    Ok(page.events)
}

/// Which of the wanted agents the row belongs to, from 1.
fn place_of(row: &Row) -> Result<i64, StoreError> {
    column(row, 7)
}
