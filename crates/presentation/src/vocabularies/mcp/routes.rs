//! The route of MCP's clients.

use actix_web::web;

use super::handlers;
use crate::resource::resource;

/// Adds the route. A client that opens a stream with GET, or ends a session with DELETE, is told that there are none.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig) {
    config.service(resource("/mcp", "POST", [web::post().to(handlers::message)]));
}
