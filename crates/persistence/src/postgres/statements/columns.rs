//! Columns as domain values. What agents and clients say is stored as bytes.

use tokenrail_domain::{AgentId, AgentStatus, JsonText, Sequence, Timestamp, TurnNumber};
use tokenrail_ports::{Epoch, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
        StoreError::Corrupt(format!("{error}{cause}"))
    })
}

pub(crate) fn agent_id_of(row: &Row, at: usize) -> Result<AgentId, StoreError> {
    column::<Uuid>(row, at).map(AgentId::from_uuid)
}

pub(crate) fn status_of(row: &Row, at: usize) -> Result<AgentStatus, StoreError> {
    parsed(row, at, AgentStatus::from_name)
}

/// A word of a fixed vocabulary, such as a status.
pub(crate) fn parsed<T>(row: &Row, at: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text = column::<&str>(row, at)?;
    parse(text).ok_or_else(|| unknown_word(text))
}

pub(crate) fn maybe_parsed<T>(
    row: &Row,
    at: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let text = column::<Option<&str>>(row, at)?;
    text.map(|text| parse(text).ok_or_else(|| unknown_word(text))).transpose()
}

pub(crate) fn sequence_of(row: &Row, at: usize) -> Result<Sequence, StoreError> {
    column::<i64>(row, at).map(|number| Sequence(number as u64))
}

pub(crate) fn maybe_sequence(row: &Row, at: usize) -> Result<Option<Sequence>, StoreError> {
    Ok(column::<Option<i64>>(row, at)?.map(|number| Sequence(number as u64)))
}

pub(crate) fn epoch_of(row: &Row, at: usize) -> Result<Epoch, StoreError> {
    column::<i64>(row, at).map(|number| Epoch(number as u64))
}

pub(crate) fn turn_of(row: &Row, at: usize) -> Result<TurnNumber, StoreError> {
    unsigned(row, at).map(TurnNumber)
}

/// A number that is never negative.
pub(crate) fn unsigned(row: &Row, at: usize) -> Result<u32, StoreError> {
    let number = column::<i32>(row, at)?;
    u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("a negative number: {number}")))
}

pub(crate) fn time_of(row: &Row, at: usize) -> Result<Timestamp, StoreError> {
    column(row, at).map(Timestamp)
}

pub(crate) fn maybe_time(row: &Row, at: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(column::<Option<i64>>(row, at)?.map(Timestamp))
}

/// A CRC-32.
pub(crate) fn checksum_of(row: &Row, at: usize) -> Result<u32, StoreError> {
    let number = column::<i64>(row, at)?;
    u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("not a checksum: {number}")))
}

/// A text that is never cut.
pub(crate) fn text_of(row: &Row, at: usize) -> Result<String, StoreError> {
    whole(column(row, at)?)
}

pub(crate) fn maybe_text(row: &Row, at: usize) -> Result<Option<String>, StoreError> {
    column::<Option<&[u8]>>(row, at)?.map(whole).transpose()
}

/// A list of texts that are never cut.
pub(crate) fn texts_of(row: &Row, at: usize) -> Result<Vec<String>, StoreError> {
    column::<Vec<&[u8]>>(row, at)?.into_iter().map(whole).collect()
}

fn whole(bytes: &[u8]) -> Result<String, StoreError> {
    str::from_utf8(bytes).map(str::to_owned).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A text, or its first bytes, which may end within a character. That character is omitted.
pub(crate) fn beginning_of(row: &Row, at: usize) -> Result<Option<String>, StoreError> {
    let Some(bytes) = column::<Option<&[u8]>>(row, at)? else { return Ok(None) };
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => whole(&bytes[..error.valid_up_to()]),
        _ => whole(bytes),
    }
    .map(Some)
}

pub(crate) fn json_of(row: &Row, at: usize) -> Result<Option<JsonText>, StoreError> {
    Ok(maybe_text(row, at)?.map(JsonText::new_unchecked))
}

pub(crate) fn unknown_word(text: &str) -> StoreError {
    StoreError::Corrupt(format!("unknown value {text:?}"))
}

/// A number of `u32` as the database stores it.
pub(crate) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The bytes of a text that may be absent.
pub(crate) fn bytes_of(text: Option<&str>) -> Option<&[u8]> {
    text.map(str::as_bytes)
}
