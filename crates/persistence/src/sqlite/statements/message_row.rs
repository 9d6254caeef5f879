//! A row of `agent_messages`, bound to statements and read from results.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, named_params};
use tokenrail_domain::{Event, Sequence};
use tokenrail_ports::StoreError;

use crate::format::rows::{MessageRow, StoredRow};
use crate::sqlite::error::store_error;

const ADD_MESSAGE: &str = "
    INSERT INTO agent_messages
        (id, agent_id, sequence_number, first_sequence, type, role, content, raw, metadata, created_at,
         checksum)
    VALUES
        (:id, :agent_id, :sequence, :first_sequence, :type, :role, :content, :raw, :metadata, :created_at,
         :checksum)";

/// The columns that [`event_of`] reads, in its order.
pub(crate) const COLUMNS: &str =
    "sequence_number, first_sequence, content, raw, metadata, created_at, type, agent_id, checksum";

/// Raw lines: text if they are UTF-8, so that people can read them; otherwise a blob.
struct RawColumn<'a>(&'a [u8]);

impl ToSql for RawColumn<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = std::str::from_utf8(self.0).is_ok();
        let value = if text { ValueRef::Text(self.0) } else { ValueRef::Blob(self.0) };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

pub(crate) fn add_message(db: &Connection, agent: &str, row: &MessageRow) -> rusqlite::Result<()> {
    let MessageRow {
        id,
        sequence,
        first_sequence,
        kind,
        role,
        content,
        raw,
        metadata,
        at: _,
        created_at,
        checksum,
    } = row;
    db.prepare_cached(ADD_MESSAGE)?.execute(named_params! {
        ":id": id,
        ":agent_id": agent,
        ":sequence": sequence.0 as i64,
        ":first_sequence": first_sequence.map(|first| first.0 as i64),
        ":type": kind,
        ":role": role,
        ":content": content,
        ":raw": raw.as_deref().map(RawColumn),
        ":metadata": metadata,
        ":created_at": created_at,
        ":checksum": checksum,
    })?;
    Ok(())
}

/// The event of a row of [`COLUMNS`].
pub(crate) fn event_of(row: &Row<'_>) -> Result<Event, StoreError> {
    stored_of(row)?.into_event()
}

/// A row of [`COLUMNS`], unchecked.
pub(crate) fn stored_of(row: &Row<'_>) -> Result<StoredRow, StoreError> {
    let sequence = Sequence(column::<i64>(row, 0)?.unsigned_abs());
    let raw = match row.get_ref(3).map_err(store_error)? {
        ValueRef::Null => None,
        ValueRef::Text(raw) | ValueRef::Blob(raw) => Some(Bytes::copy_from_slice(raw)),
        _ => return Err(StoreError::Corrupt(format!("message {sequence}: raw is a number"))),
    };
    Ok(StoredRow {
        agent: column(row, 7)?,
        sequence,
        first_sequence: column::<Option<i64>>(row, 1)?.map(|first| Sequence(first.unsigned_abs())),
        kind: column(row, 6)?,
        content: column(row, 2)?,
        raw,
        metadata: column(row, 4)?,
        created_at: column(row, 5)?,
        checksum: column(row, 8)?,
    })
}

fn column<T: FromSql>(row: &Row<'_>, at: usize) -> Result<T, StoreError> {
    row.get(at).map_err(store_error)
}
