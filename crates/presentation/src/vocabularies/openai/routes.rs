//! The routes of OpenAI's clients.

use actix_web::{HttpResponse, web};

use super::handlers::{completions, create, models, responses};
use crate::error::Problem;
use crate::resource::{get_or_head, resource};

/// Adds the routes.
pub(in crate::vocabularies) fn routes(config: &mut web::ServiceConfig) {
    let (get, post, delete) = (web::get, web::post, web::delete);
    config
        .service(resource("/openai/v1/models", "GET, HEAD", [get_or_head().to(models::models)]))
        .service(resource("/openai/v1/models/{id:.+}", "GET, HEAD", [get_or_head().to(models::model)]))
        .service(resource("/openai/v1/responses", "POST", [post().to(create::create)]))
        .service(resource(
            "/openai/v1/responses/{id}",
            "GET, DELETE",
            [get().to(responses::retrieve), delete().to(responses::delete)],
        ))
        .service(resource("/openai/v1/responses/{id}/cancel", "POST", [post().to(responses::cancel)]))
        .service(resource(
            "/openai/v1/responses/{id}/input_items",
            "GET, HEAD",
            [get_or_head().to(responses::input_items)],
        ));
    config
        .service(resource("/openai/v1/chat/completions", "POST", [post().to(completions::complete)]))
        .service(resource(
            "/openai/v1/chat/completions/{id}",
            "GET, DELETE",
            [get().to(completions::completion), delete().to(completions::delete_completion)],
        ));
    // All other paths of OpenAI's API are refused in OpenAI's format.
    let nothing = web::to(|| async { Err::<HttpResponse, _>(Problem::not_found()) });
    config.service(web::resource(["/openai", "/openai/{rest:.*}"]).default_service(nothing));
}
