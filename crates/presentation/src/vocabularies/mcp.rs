//! The Model Context Protocol (MCP): tools with which an agent, or any other client, launches agents, talks to them and
//! reads them by cursor, and their transcripts as resources.
//!
//! The server keeps no MCP sessions. Each request is complete in itself, so any node of a cluster can answer it, and a
//! client that was restarted goes on with the numbers that it has.

mod dto;
mod entries;
mod handlers;
mod openapi;
mod refusal;
mod routes;

pub(super) use openapi::document;
pub(super) use refusal::REFUSALS;
pub(super) use routes::routes;
