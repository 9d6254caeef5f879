//! Pages of messages, as a conversation shows them: the rows of all events that are not deltas, and the deltas of open
//! messages.

use std::collections::HashMap;
use std::iter::Peekable;

use rusqlite::{Connection, named_params};
use tokenrail_domain::{AgentId, Event, Sequence, TurnNumber};
use tokenrail_ports::rules::{EventPage, Flow};
use tokenrail_ports::{MessagePage, PageLimit, StoreError};

use crate::format::rows;
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

    let mut page = EventPage::new(limit);
    let mut deltas = deltas.into_iter().peekable();
    let mut flow = Flow::More;
    while flow == Flow::More
        && let Some(row) = found.next().map_err(store_error)?
    {
        let event = message_row::event_of(row)?;
        flow = before(&mut deltas, event.sequence, &mut page);
        if flow == Flow::More {
            flow = page.offer(event);
        }
    }
    if flow == Flow::More {
        flow = before(&mut deltas, Sequence(u64::MAX), &mut page);
    }
    let up_to = match flow {
        Flow::More => head,
        Flow::Enough => page.events.last().map_or(after, |event| event.sequence),
    };
    Ok(MessagePage { events: page.events, up_to, head })
}

/// Offers the deltas before `end` to the page.
fn before(deltas: &mut Peekable<impl Iterator<Item = Event>>, end: Sequence, page: &mut EventPage) -> Flow {
    while let Some(delta) = deltas.next_if(|delta| delta.sequence < end) {
        if page.offer(delta) == Flow::Enough {
            return Flow::Enough;
        }
    }
    Flow::More
}

fn place(db: &Connection, id: AgentId) -> Result<MessagesPlace, StoreError> {
    let mut statement = db.prepare_cached(PLACE).map_err(store_error)?;
    let mut rows = statement.query(named_params! { ":id": id.to_string() }).map_err(store_error)?;
    let Some(row) = rows.next().map_err(store_error)? else { return Err(StoreError::UnknownAgent(id)) };
    let open_from = maybe::<i64>(row, 2).map_err(store_error)?.map(|first| Sequence(first as u64));
    let agent = row.get(0).map_err(store_error)?;
    Ok(MessagesPlace { agent, head: sequence_of(row, 1).map_err(store_error)?, open_from })
}

/// The deltas after `after` whose message is neither complete nor abandoned: all of them, or at least one more than
/// the page can take.
fn open_deltas(
    db: &Connection,
    (agent, id): (i64, AgentId),
    open_from: Sequence,
    after: Sequence,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let closed = closed_messages(db, id, open_from)?;
    let is_open = |event: &Event| {
        event.body.delta_of().is_some_and(|message| {
            closed.get(&(event.turn, message.0)).is_none_or(|closed_at| *closed_at < event.sequence)
        })
    };
    let mut deltas = EventPage::new(PageLimit { events: limit.events.max(1).saturating_add(1), ..limit });
    let mut one_more = None;
    let from = open_from.max(Sequence(after.0.saturating_add(1)));
    for_each_between(db, agent, (from, Sequence(u64::MAX)), |event| {
        if !is_open(&event) {
            return Flow::More;
        }
        let flow = deltas.offer(event.clone());
        if flow == Flow::Enough {
            one_more = Some(event);
        }
        flow
    })?;
    // The page must notice that there is an event that does not fit.
    deltas.events.extend(one_more);
    Ok(deltas.events)
}

/// The last number at which each message was closed.
fn closed_messages(
    db: &Connection,
    id: AgentId,
    from: Sequence,
) -> Result<HashMap<(TurnNumber, u32), Sequence>, StoreError> {
    let mut statement = db.prepare_cached(CLOSED).map_err(store_error)?;
    let mut rows = statement
        .query(named_params! { ":id": id.to_string(), ":from": from.0 as i64 })
        .map_err(store_error)?;
    let mut closed = HashMap::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        let metadata: String = row.get(1).map_err(store_error)?;
        if let Some(message) = rows::closed_message(&metadata)? {
            closed.insert(message, sequence_of(row, 0).map_err(store_error)?);
        }
    }
    Ok(closed)
}
