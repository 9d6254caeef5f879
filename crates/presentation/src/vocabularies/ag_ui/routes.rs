//! The routes of AG-UI's clients.

use actix_web::web;

use super::handlers::{runs, threads};
use crate::resource::resource;

/// Adds the routes.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig) {
    let (get, post) = (web::get, web::post);
    config
        .service(resource("/ag-ui", "GET, POST", [get().to(runs::capabilities), post().to(runs::run)]))
        .service(resource("/ag-ui/{type}", "POST", [post().to(runs::run_of_type)]))
        .service(resource("/ag-ui/threads/{id}", "GET", [get().to(threads::connect)]))
        .service(resource("/ag-ui/threads/{id}/cancel", "POST", [post().to(threads::cancel)]));
}
