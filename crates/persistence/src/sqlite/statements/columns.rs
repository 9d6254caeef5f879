//! Columns as domain values.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, Type, ValueRef};
use tokenrail_domain::{AgentId, AgentStatus, JsonText, Sequence, TurnNumber};
use tokenrail_ports::Epoch;

pub(crate) fn agent_id_of(row: &Row<'_>, at: usize) -> rusqlite::Result<AgentId> {
    parsed(row, at, |text| text.parse().ok())
}

pub(crate) fn status_of(row: &Row<'_>, at: usize) -> rusqlite::Result<AgentStatus> {
    parsed(row, at, AgentStatus::from_name)
}

/// A word of a fixed vocabulary, such as a status.
pub(crate) fn parsed<T>(row: &Row<'_>, at: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text = row.get_ref(at)?.as_str()?;
    parse(text).ok_or_else(|| unknown_word(at, text))
}

pub(crate) fn sequence_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Sequence> {
    unsigned(row, at).map(Sequence)
}

pub(crate) fn epoch_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Epoch> {
    unsigned(row, at).map(Epoch)
}

pub(crate) fn turn_of(row: &Row<'_>, at: usize) -> rusqlite::Result<TurnNumber> {
    row.get(at).map(TurnNumber)
}

/// A text, or its first bytes: a blob that may end within a character, which is omitted.
pub(crate) fn text_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    let ValueRef::Blob(bytes) = row.get_ref(at)? else { return row.get(at) };
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => {
            return Err(rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error)));
        }
    };
    Ok(Some(text.to_owned()))
}

pub(crate) fn json_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<JsonText>> {
    Ok(row.get::<_, Option<String>>(at)?.map(JsonText::new_unchecked))
}

/// Integers of SQLite are signed: the upper half of `u64` is stored as negative numbers.
pub(crate) fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(|number| number as u64)
}

pub(crate) fn maybe<T: FromSql>(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<T>> {
    row.get(at)
}

pub(crate) fn unknown_word(at: usize, text: &str) -> rusqlite::Error {
    let error = FromSqlError::Other(format!("unknown value {text:?}").into());
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}
