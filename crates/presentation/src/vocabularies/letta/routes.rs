//! The routes of Letta's clients. Each route exists with and without a slash at its end, because clients use both.

use actix_web::{Resource, Route, web};

use super::handlers as letta;
use super::run_stream::Guest;
use crate::error::Problem;
use crate::resource::{get_or_head, serving_or};

/// Adds the routes. Their streams can also carry the frames of `guest`.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig, guest: Guest) {
    config.app_data(web::Data::new(guest));
    service(config);
    agents(config);
    conversations(config);
    runs(config);
    // All other paths of Letta's API are refused in Letta's format.
    let nothing = web::to(|| async { letta::refused(Problem::not_found()) });
    config.service(web::resource(["/v1", "/v1/{rest:.*}"]).default_service(nothing));
}

fn both(path: &str) -> Resource {
    web::resource([path.to_owned(), format!("{path}/")])
}

fn serving<const N: usize>(resource: Resource, allow: &'static str, routes: [Route; N]) -> Resource {
    let refuse = move || async move { letta::refused(Problem::method_not_allowed(allow)) };
    serving_or(resource, web::to(refuse), routes)
}

fn service(config: &mut web::ServiceConfig) {
    config
        .service(serving(both("/v1/health"), "GET, HEAD", [get_or_head().to(letta::health)]))
        .service(serving(both("/v1/models"), "GET, HEAD", [get_or_head().to(letta::models)]));
}

fn agents(config: &mut web::ServiceConfig) {
    let (get, post, update, delete) = (get_or_head, web::post, web::patch, web::delete);
    config
        .service(serving(
            both("/v1/agents"),
            "GET, HEAD, POST",
            [get().to(letta::agents), post().to(letta::create)],
        ))
        .service(serving(
            both("/v1/agents/{id}"),
            "GET, HEAD, PATCH, DELETE",
            [get().to(letta::agent), update().to(letta::update_agent), delete().to(letta::delete_agent)],
        ))
        .service(serving(
            both("/v1/agents/{id}/messages"),
            "GET, HEAD, POST",
            [get().to(letta::history), post().to(letta::say)],
        ))
        .service(serving(both("/v1/agents/{id}/messages/stream"), "POST", [post().to(letta::say_streaming)]))
        .service(serving(
            both("/v1/agents/{id}/messages/async"),
            "POST",
            [post().to(letta::say_in_background)],
        ))
        .service(serving(both("/v1/agents/{id}/messages/cancel"), "POST", [post().to(letta::cancel)]));
    for list in letta::NO_LISTS {
        let address = format!("/v1/agents/{{id}}/{list}");
        config.service(serving(both(&address), "GET, HEAD", [get().to(letta::no_list)]));
    }
}

fn conversations(config: &mut web::ServiceConfig) {
    let (get, post, update, delete) = (get_or_head, web::post, web::patch, web::delete);
    config
        .service(serving(
            both("/v1/conversations"),
            "GET, HEAD, POST",
            [get().to(letta::conversations), post().to(letta::begin)],
        ))
        .service(serving(
            both("/v1/conversations/{id}"),
            "GET, HEAD, PATCH, DELETE",
            [
                get().to(letta::conversation),
                update().to(letta::update_conversation),
                delete().to(letta::delete_conversation),
            ],
        ))
        .service(serving(
            both("/v1/conversations/{id}/messages"),
            "GET, HEAD, POST",
            [get().to(letta::conversation_history), post().to(letta::converse)],
        ))
        .service(serving(both("/v1/conversations/{id}/stream"), "POST", [post().to(letta::converse_again)]))
        .service(serving(
            both("/v1/conversations/{id}/cancel"),
            "POST",
            [post().to(letta::cancel_conversation)],
        ));
}

fn runs(config: &mut web::ServiceConfig) {
    let (get, post) = (get_or_head, web::post);
    config
        .service(serving(both("/v1/runs"), "GET, HEAD", [get().to(letta::runs)]))
        .service(serving(both("/v1/runs/{id}"), "GET, HEAD", [get().to(letta::run)]))
        .service(serving(both("/v1/runs/{id}/messages"), "GET, HEAD", [get().to(letta::run_history)]))
        .service(serving(both("/v1/runs/{id}/usage"), "GET, HEAD", [get().to(letta::run_usage)]))
        .service(serving(both("/v1/runs/{id}/stream"), "POST", [post().to(letta::run_stream)]))
        .service(serving(both("/v1/runs/{id}/cancel"), "POST", [post().to(letta::cancel_run)]));
}
