//! The API on one screen.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, middleware, web};

use crate::api::Api;
use crate::error::Problem;
use crate::resource::{get_or_head, resource};
use crate::vocabularies::FOREIGN;
use crate::{guard, openapi, rest, ws};

/// The whole application: the routes behind their guard. More routes can be added to it; they are guarded too.
pub fn app(
    api: Api,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new().configure(|config| routes(config, api)).wrap(middleware::from_fn(guard::guard))
}

/// All routes. They must stand behind the guard of [`app`], which also writes the bodies of problems.
pub fn routes(config: &mut web::ServiceConfig, api: Api) {
    let (get, post, delete) = (get_or_head, web::post, web::delete);
    if api.config().test_routes {
        config.service(resource("/ws/echo", "GET", [web::get().to(ws::echo::open)]));
        config.service(resource("/test/panic/{words}", "GET", [web::get().to(rest::panic)]));
    }
    config
        .app_data(web::Data::new(api))
        .service(resource("/api/agents", "GET, HEAD, POST", [get().to(rest::list), post().to(rest::launch)]))
        .service(resource("/api/agents/active", "GET, HEAD", [get().to(rest::active)]))
        .service(resource("/api/agents/import", "POST", [post().to(rest::take_in)]))
        .service(resource(
            "/api/agents/{id}",
            "GET, HEAD, DELETE",
            [get().to(rest::get), delete().to(rest::delete)],
        ))
        .service(resource("/api/agents/{id}/status", "GET, HEAD", [get().to(rest::status)]))
        .service(resource(
            "/api/agents/{id}/messages",
            "GET, HEAD, POST",
            [get().to(rest::messages), post().to(rest::send)],
        ))
        .service(resource("/api/agents/{id}/events", "GET, HEAD", [get().to(rest::events)]))
        .service(resource("/api/agents/{id}/turns", "GET, HEAD", [get().to(rest::turns)]))
        .service(resource("/api/agents/{id}/turns/{n}", "GET, HEAD", [get().to(rest::turn)]))
        .service(resource("/api/agents/{id}/export", "GET, HEAD", [get().to(rest::export)]))
        .service(resource("/api/agents/{id}/replay", "POST", [post().to(rest::replay)]))
        .service(resource("/api/agents/{id}/cancel", "POST", [post().to(rest::cancel)]))
        .service(resource("/api/agents/{id}/permissions/{request}", "POST", [post().to(rest::permission)]))
        .service(resource("/api/agent-types", "GET, HEAD", [get().to(rest::types)]))
        .service(resource("/api/tickets", "POST", [post().to(rest::ticket)]))
        .service(resource("/ws", "GET", [web::get().to(ws::open)]))
        .service(resource("/healthz", "GET, HEAD", [get().to(rest::health)]))
        .service(resource("/readyz", "GET, HEAD", [get().to(rest::ready)]))
        .service(resource("/metrics", "GET, HEAD", [get().to(rest::metrics)]))
        .service(resource("/problems/{code}", "GET, HEAD", [get().to(rest::problem)]))
        .service(resource("/openapi.json", "GET, HEAD", [get().to(openapi::document)]))
        .default_service(web::to(nothing));
    for vocabulary in FOREIGN {
        config.configure(vocabulary.routes);
    }
}

/// Something that can only be read: a page, a file. It needs a token unless [`PresentationConfig::open_paths`] names it.
///
/// [`PresentationConfig::open_paths`]: crate::PresentationConfig::open_paths
pub fn page<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    resource(path, "GET, HEAD", [get_or_head().to(handler)])
}

async fn nothing(request: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::nothing_at(request.path()))
}
