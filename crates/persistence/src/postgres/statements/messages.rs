//! Pages of messages, as a conversation shows them: the rows of all events that are not deltas, and the deltas of open
//! messages.

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::rules::Flow;
use tokenrail_ports::{MessagePage, PageLimit, StoreError};

use crate::format::message_page::{ClosedMessages, MessageMerge, OpenDeltas};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, maybe_sequence, sequence_of, text_of};
use crate::postgres::statements::journal::{FetchLimit, for_each_between};
use crate::postgres::statements::message_row;

const PLACE: &str = "
    SELECT agents.key, heads.head, heads.open_from
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = $1";

/// The events that closed a message since the oldest open one began.
const CLOSED: &str = "
    SELECT sequence_number, metadata
    FROM agent_messages
    WHERE agent = $1 AND $2 <= sequence_number AND type IN ('assistant', 'system')
    ORDER BY sequence_number";

/// Rows after `$2`: at most `$3`, and no further one after `$4` bytes.
fn rows_after() -> String {
    let columns = message_row::COLUMNS;
    format!(
        "SELECT {columns}
        FROM (
            SELECT {columns},
                sum(octet_length(content) + coalesce(octet_length(raw), 0)) OVER (ORDER BY sequence_number)
                    - octet_length(content) - coalesce(octet_length(raw), 0) AS bytes_before
            FROM agent_messages
            WHERE agent = $1 AND $2 < sequence_number
            ORDER BY sequence_number
            LIMIT $3
        ) AS found
        WHERE bytes_before < $4
        ORDER BY sequence_number"
    )
}

struct MessagesPlace {
    agent: i64,
    head: Sequence,
    open_from: Option<Sequence>,
}

/// One page. `db` is in a transaction that sees one state of the database.
pub(crate) async fn page(
    db: &Link,
    id: AgentId,
    after: Sequence,
    limit: PageLimit,
    fetch: FetchLimit,
) -> Result<MessagePage, QueryFailure> {
    let MessagesPlace { agent, head, open_from } = place(db, id).await?;
    let deltas = match open_from {
        Some(open_from) => open_deltas(db, agent, (open_from, after), limit, fetch).await?,
        None => Vec::new(),
    };
    let mut merge = MessageMerge::new((after, head), deltas, limit);
    let (row_limit, byte_limit) = fetch.for_page(limit).as_numbers();
    let sql = rows_after();
    let mut seen = i64::try_from(after.0).unwrap_or(i64::MAX);
    loop {
        let rows = db.rows(&sql, &[&agent, &seen, &row_limit, &byte_limit]).await?;
        // The page itself has the same limits, so nearly always the first round fills it, or nothing is left.
        let Some(last) = rows.last() else { return Ok(merge.into_page()) };
        seen = column(last, 0)?;
        for row in &rows {
            if merge.offer(message_row::event_of(row, id)?) == Flow::Enough {
                return Ok(merge.into_page());
            }
        }
        if (head.0 as i64) <= seen {
            return Ok(merge.into_page());
        }
    }
}

async fn place(db: &Link, id: AgentId) -> Result<MessagesPlace, QueryFailure> {
    let row = db.row(PLACE, &[&id.as_uuid()]).await?.ok_or(StoreError::UnknownAgent(id))?;
    let (agent, head) = (column(&row, 0)?, sequence_of(&row, 1)?);
    Ok(MessagesPlace { agent, head, open_from: maybe_sequence(&row, 2)? })
}

/// The deltas of open messages after `after`.
async fn open_deltas(
    db: &Link,
    agent: i64,
    (open_from, after): (Sequence, Sequence),
    limit: PageLimit,
    fetch: FetchLimit,
) -> Result<Vec<Event>, QueryFailure> {
    let mut deltas = OpenDeltas::new(closed_messages(db, agent, open_from).await?, limit);
    let from = open_from.max(Sequence(after.0.saturating_add(1)));
    for_each_between(db, agent, (from, Sequence(u64::MAX)), fetch, |event| deltas.see(event)).await?;
    Ok(deltas.into_events())
}

async fn closed_messages(db: &Link, agent: i64, from: Sequence) -> Result<ClosedMessages, QueryFailure> {
    let mut closed = ClosedMessages::default();
    for row in db.rows(CLOSED, &[&agent, &(from.0 as i64)]).await? {
        closed.see(sequence_of(&row, 0)?, &text_of(&row, 1)?)?;
    }
    Ok(closed)
}
