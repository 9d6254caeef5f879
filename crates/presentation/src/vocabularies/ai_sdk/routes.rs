//! The routes of the AI SDK's clients.

use actix_web::web;

use super::{handlers, history, socket};
use crate::resource::resource;

/// Adds the routes.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig) {
    let (get, post) = (web::get, web::post);
    config
        .service(resource(
            "/api/chat",
            "GET, POST",
            [get().to(socket::chat_socket), post().to(handlers::chat_say)],
        ))
        .service(resource("/api/chat/{id}/messages", "GET", [get().to(history::chat_messages)]))
        .service(resource("/api/chat/{id}/stream", "GET", [get().to(handlers::chat_stream)]))
        .service(resource("/api/chat/{id}/stop", "POST", [post().to(handlers::chat_stop)]));
}
