//! Letta's vocabulary: the REST API that Letta's clients and its command line speak, and its streams.

mod blocks;
mod dto;
mod fold;
mod handlers;
mod openapi;
mod routes;
mod run_id;

pub(super) use blocks::Guest;
pub(super) use openapi::document;
pub(super) use routes::routes;
