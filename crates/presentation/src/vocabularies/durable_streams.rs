//! The vocabulary of Durable Streams, read-only: the journal of an agent is a stream of that protocol, and each event
//! is a message of it.

mod dto;
mod handlers;
mod offset;
mod openapi;
mod read_query;
mod routes;
mod stream_cursor;

use bytes::Bytes;
use tokenrail_application::Page;
use tokenrail_domain::{AgentId, Event};

pub(super) use openapi::document;
pub(super) use routes::routes;

/// Writes events as messages: items of a JSON list, without its brackets and on one line.
#[derive(Clone, Copy)]
pub(super) struct StreamMessages {
    pub(super) of_events: fn(AgentId, &[Event]) -> Bytes,
    /// The same bytes, written once for all followers of an agent.
    pub(super) of_page: fn(AgentId, &Page) -> Bytes,
}
