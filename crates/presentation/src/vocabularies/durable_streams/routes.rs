//! The route of Durable Streams.

use actix_web::web;

use super::StreamMessages;
use super::handlers::read;
use crate::by_id::ById;
use crate::resource::{get_or_head, resource};

/// Adds the route. Its messages are written by `messages`.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig, messages: StreamMessages) {
    let read = move |by_id: ById| read::read(by_id, messages);
    config.service(resource("/v1/stream/agents/{id}/events", "GET, HEAD", [get_or_head().to(read)]));
}
