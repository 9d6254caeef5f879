//! Letta's vocabulary: the REST API that Letta's clients and its command-line tool use, and its streams.

mod dto;
mod fold;
mod handlers;
mod openapi;
mod routes;
mod run_id;
mod run_stream;

pub(super) use openapi::document;
pub(super) use routes::routes;
pub(super) use run_stream::Guest;
