//! The wire names of Durable Streams.

use serde::Serialize;

use super::offset::Offset;

pub(super) const NEXT_OFFSET: &str = "stream-next-offset";
pub(super) const UP_TO_DATE: &str = "stream-up-to-date";
pub(super) const CLOSED: &str = "stream-closed";
pub(super) const CURSOR: &str = "stream-cursor";

/// The data of the event `control`, which follows each event `data` of an event stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ControlDto {
    pub(super) stream_next_offset: Offset,
    /// Absent at the end of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_cursor: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) up_to_date: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream_closed: bool,
}
