//! Pages of messages, as a conversation shows them: the rows of all events that are not deltas, and the deltas of open
//! messages.

use rusqlite::{Connection, named_params};
use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::rules::Flow;
use tokenrail_ports::{MessagePage, PageLimit, StoreError};

use crate::format::message_page::{ClosedMessages, MessageMerge, OpenDeltas};
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::{maybe, sequence_of};
use crate::sqlite::statements::journal::for_each_between;
use crate::sqlite::statements::message_row;

const PLACE: &str = "
    SELECT agents.key, heads.head, heads.open_from
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = :id";

/// The events that closed a message since the oldest open one began.
const CLOSED: &str = "
    SELECT sequence_number, metadata
    FROM agent_messages
    WHERE agent_id = :id AND :from <= sequence_number AND type IN ('assistant', 'system')
    ORDER BY sequence_number";

struct MessagesPlace {
    agent: i64,
    head: Sequence,
    open_from: Option<Sequence>,
}

/// One page. `db` is in a transaction, so all of it is from one snapshot.
pub(crate) fn page(
    db: &Connection,
    id: AgentId,
    after: Sequence,
    limit: PageLimit,
) -> Result<MessagePage, StoreError> {
    let MessagesPlace { agent, head, open_from } = place(db, id)?;
    let deltas = match open_from {
        Some(open_from) => open_deltas(db, (agent, id), open_from, after, limit)?,
        None => Vec::new(),
    };
    let sql = format!(
        "SELECT {} FROM agent_messages
        WHERE agent_id = :id AND :after < sequence_number
        ORDER BY sequence_number",
        message_row::COLUMNS
    );
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let after_number = i64::try_from(after.0).unwrap_or(i64::MAX);
    let mut found = statement
        .query(named_params! { ":id": id.to_string(), ":after": after_number })
        .map_err(store_error)?;

    let mut merge = MessageMerge::new((after, head), deltas, limit);
    while let Some(row) = found.next().map_err(store_error)? {
        if merge.offer(message_row::event_of(row)?) == Flow::Enough {
            break;
        }
    }
    Ok(merge.into_page())
}

fn place(db: &Connection, id: AgentId) -> Result<MessagesPlace, StoreError> {
    let mut statement = db.prepare_cached(PLACE).map_err(store_error)?;
    let mut rows = statement.query(named_params! { ":id": id.to_string() }).map_err(store_error)?;
    let Some(row) = rows.next().map_err(store_error)? else { return Err(StoreError::UnknownAgent(id)) };
    let open_from = maybe::<i64>(row, 2).map_err(store_error)?.map(|first| Sequence(first as u64));
    let agent = row.get(0).map_err(store_error)?;
    Ok(MessagesPlace { agent, head: sequence_of(row, 1).map_err(store_error)?, open_from })
}

/// The deltas of open messages after `after`.
fn open_deltas(
    db: &Connection,
    (agent, id): (i64, AgentId),
    open_from: Sequence,
    after: Sequence,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let mut deltas = OpenDeltas::new(closed_messages(db, id, open_from)?, limit);
    let from = open_from.max(Sequence(after.0.saturating_add(1)));
    for_each_between(db, agent, (from, Sequence(u64::MAX)), |event| deltas.see(event))?;
    Ok(deltas.into_events())
}

fn closed_messages(db: &Connection, id: AgentId, from: Sequence) -> Result<ClosedMessages, StoreError> {
    let mut statement = db.prepare_cached(CLOSED).map_err(store_error)?;
    let mut rows = statement
        .query(named_params! { ":id": id.to_string(), ":from": from.0 as i64 })
        .map_err(store_error)?;
    let mut closed = ClosedMessages::default();
    while let Some(row) = rows.next().map_err(store_error)? {
        let metadata: String = row.get(1).map_err(store_error)?;
        closed.see(sequence_of(row, 0).map_err(store_error)?, &metadata)?;
    }
    Ok(closed)
}
