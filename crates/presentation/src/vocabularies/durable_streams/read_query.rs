//! The query of a read.

use super::offset::ReadFrom;
use crate::error::{Code, Problem};
use crate::query::Query;

/// What a client wants to read, and how.
pub(super) struct ReadQuery {
    pub(super) from: ReadFrom,
    pub(super) live: Option<Live>,
    /// The cursor of the last live response.
    pub(super) cursor: Option<String>,
}

/// How a client waits for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    LongPoll,
    Sse,
}

impl ReadQuery {
    /// Reads the parameters `offset`, `live` and `cursor`.
    pub(super) fn of(query: &Query) -> Result<Self, Problem> {
        let live = match query.get("live") {
            None => None,
            Some("long-poll") => Some(Live::LongPoll),
            Some("sse") => Some(Live::Sse),
            Some(_) => return Err(Problem::new(Code::BadRequest, "live must be long-poll or sse")),
        };
        let malformed = |detail| Problem::new(Code::CursorMalformed, detail);
        let mut offsets = query.all("offset");
        let from = match (offsets.next(), offsets.next()) {
            (Some(offset), None) => ReadFrom::read(offset).ok_or_else(|| {
                malformed("offset must be -1, now, or an offset that the server has returned")
            })?,
            (Some(_), Some(_)) => return Err(malformed("send offset only once")),
            (None, _) if live.is_some() => return Err(malformed("a live read needs an offset")),
            (None, _) => ReadFrom::START,
        };
        Ok(Self { from, live, cursor: query.get("cursor").map(str::to_owned) })
    }
}
