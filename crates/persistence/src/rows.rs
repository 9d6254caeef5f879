//! The rows of `agent_messages`: every JSON name of the database, and no other file has one.
//!
//! A row holds all of its event, so that history is read without unpacking the journal.

mod content;
mod metadata;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql};
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, TurnNumber, event_id};
use tokenrail_ports::StoreError;

use self::metadata::Metadata;
use crate::checksum::Checksum;
use crate::iso;

/// One event that is not a delta, as it is stored.
pub(crate) struct MessageRow {
    pub(crate) id: String,
    pub(crate) sequence: Sequence,
    pub(crate) first_sequence: Option<Sequence>,
    pub(crate) kind: &'static str,
    pub(crate) role: Option<&'static str>,
    pub(crate) content: String,
    pub(crate) raw: Option<RawColumn>,
    pub(crate) metadata: String,
    pub(crate) created_at: String,
    pub(crate) checksum: u32,
}

/// Raw lines: text where they are UTF-8, so that people can read them; else a blob.
pub(crate) struct RawColumn(Bytes);

impl ToSql for RawColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = std::str::from_utf8(&self.0).is_ok();
        let value = if text { ValueRef::Text(&self.0) } else { ValueRef::Blob(&self.0) };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// The rows of a batch.
///
/// # Errors
/// [`StoreError::Corrupt`] where an event holds a JSON text that is none.
pub(crate) fn rows_of(agent: AgentId, events: &[Event]) -> Result<Vec<MessageRow>, StoreError> {
    events.iter().filter(|event| !event.body.is_delta()).map(|event| row_of(agent, event)).collect()
}

fn row_of(agent: AgentId, event: &Event) -> Result<MessageRow, StoreError> {
    let (kind, role) = kind_and_role(&event.body);
    let not_json =
        |error: serde_json::Error| StoreError::Corrupt(format!("event {}: {error}", event.sequence));
    let content = content::write(&event.body).map_err(not_json)?;
    let metadata =
        Metadata::of(event).and_then(|metadata| serde_json::to_string(&metadata)).map_err(not_json)?;
    let first_sequence = match &event.body {
        EventBody::Message(message) => message.first_sequence,
        _ => None,
    };
    let created_at = iso::format(event.at);
    let checksum = checksum_of(&Columns {
        agent: &agent.to_string(),
        sequence: event.sequence,
        first_sequence,
        kind,
        content: &content,
        raw: event.raw.as_deref(),
        metadata: &metadata,
        created_at: &created_at,
    });
    Ok(MessageRow {
        id: event_id(agent, event).to_string(),
        sequence: event.sequence,
        first_sequence,
        kind,
        role,
        content,
        raw: event.raw.clone().map(RawColumn),
        metadata,
        created_at,
        checksum: checksum.sum(),
    })
}

/// What a row's checksum is made of.
struct Columns<'a> {
    agent: &'a str,
    sequence: Sequence,
    first_sequence: Option<Sequence>,
    kind: &'a str,
    content: &'a str,
    raw: Option<&'a [u8]>,
    metadata: &'a str,
    created_at: &'a str,
}

fn checksum_of(columns: &Columns<'_>) -> Checksum {
    let Columns { agent, sequence, first_sequence, kind, content, raw, metadata, created_at } = columns;
    let numbers = Checksum::new().number(sequence.0 as i64);
    let numbers = numbers.number(first_sequence.map_or(0, |first| first.0 as i64));
    let texts = numbers.bytes(agent.as_bytes()).bytes(kind.as_bytes()).bytes(content.as_bytes());
    texts.maybe(*raw).bytes(metadata.as_bytes()).bytes(created_at.as_bytes())
}

/// The columns that [`event`] reads, in its order.
pub(crate) const COLUMNS: &str =
    "sequence_number, first_sequence, content, raw, metadata, created_at, type, agent_id, checksum";

/// Reads a row back.
pub(crate) fn event(row: &Row<'_>) -> Result<Event, StoreError> {
    let sequence = Sequence(column::<i64>(row, 0)?.unsigned_abs());
    let broken = |what: &str| StoreError::Corrupt(format!("message {sequence}: {what}"));
    let first_sequence = column::<Option<i64>>(row, 1)?.map(|first| Sequence(first.unsigned_abs()));
    let content: String = column(row, 2)?;
    let raw = match row.get_ref(3).map_err(crate::error::store_error)? {
        ValueRef::Null => None,
        ValueRef::Text(raw) | ValueRef::Blob(raw) => Some(Bytes::copy_from_slice(raw)),
        _ => return Err(broken("raw is a number")),
    };
    let metadata: String = column(row, 4)?;
    let (created_at, kind): (String, String) = (column(row, 5)?, column(row, 6)?);
    let columns = Columns {
        agent: &column::<String>(row, 7)?,
        sequence,
        first_sequence,
        kind: &kind,
        content: &content,
        raw: raw.as_deref(),
        metadata: &metadata,
        created_at: &created_at,
    };
    checksum_of(&columns).check(row, 8, || format!("message {sequence}"))?;
    let at = iso::parse(&created_at).ok_or_else(|| broken("created_at is no time"))?;
    let metadata: Metadata = serde_json::from_str(&metadata).map_err(|error| broken(&error.to_string()))?;
    let turn = TurnNumber(metadata.turn);
    let body =
        metadata.into_body(&kind, content, first_sequence).map_err(|error| broken(&error.to_string()))?;
    Ok(Event { sequence, at, turn, body, raw })
}

/// Which message a row has closed: by completing it, or by throwing it away.
pub(crate) fn closed_message(metadata: &str) -> Result<Option<(TurnNumber, u32)>, StoreError> {
    let metadata: Metadata =
        serde_json::from_str(metadata).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(metadata.closed().map(|message| (TurnNumber(metadata.turn), message)))
}

fn column<T: rusqlite::types::FromSql>(row: &Row<'_>, at: usize) -> Result<T, StoreError> {
    row.get(at).map_err(crate::error::store_error)
}

/// The seeds' words for it.
fn kind_and_role(body: &EventBody) -> (&'static str, Option<&'static str>) {
    match body {
        EventBody::UserMessage { .. } | EventBody::ToolResult(_) => ("user", Some("user")),
        EventBody::TextDelta { .. }
        | EventBody::ReasoningDelta { .. }
        | EventBody::ToolInputDelta { .. }
        | EventBody::Message(_) => ("assistant", Some("assistant")),
        EventBody::ToolCall(_) => ("tool", None),
        EventBody::Usage(_) | EventBody::Notice(_) | EventBody::Abandoned { .. } => ("system", None),
        EventBody::Error(_) => ("error", None),
        EventBody::TurnResult(_) => ("response", None),
    }
}
