//! The API on one screen.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, HttpResponse, Resource, Route, middleware, web};

use crate::api::Api;
use crate::error::Problem;
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
    let (get, post, delete) = (web::get, web::post, web::delete);
    config
        .app_data(web::Data::new(api))
        .service(resource("/api/agents", "GET, POST", [get().to(rest::list), post().to(rest::launch)]))
        .service(resource("/api/agents/active", "GET", [get().to(rest::active)]))
        .service(resource(
            "/api/agents/{id}",
            "GET, DELETE",
            [get().to(rest::get), delete().to(rest::delete)],
        ))
        .service(resource("/api/agents/{id}/status", "GET", [get().to(rest::status)]))
        .service(resource(
            "/api/agents/{id}/messages",
            "GET, POST",
            [get().to(rest::messages), post().to(rest::send)],
        ))
        .service(resource("/api/agents/{id}/events", "GET", [get().to(rest::events)]))
        .service(resource("/api/agents/{id}/cancel", "POST", [post().to(rest::cancel)]))
        .service(resource("/api/agent-types", "GET", [get().to(rest::types)]))
        .service(resource("/api/tickets", "POST", [post().to(rest::ticket)]))
        .service(resource("/ws", "GET", [get().to(ws::open)]))
        .service(resource("/healthz", "GET", [get().to(rest::health)]))
        .service(resource("/readyz", "GET", [get().to(rest::ready)]))
        .service(resource("/metrics", "GET", [get().to(rest::metrics)]))
        .service(resource("/openapi.json", "GET", [get().to(openapi::document)]))
        .default_service(web::to(|| async { Err::<HttpResponse, _>(Problem::not_found()) }));
}

fn resource<const N: usize>(path: &str, allow: &'static str, routes: [Route; N]) -> Resource {
    let refuse = move || async move { Err::<HttpResponse, _>(Problem::method_not_allowed(allow)) };
    let resource = web::resource(path).default_service(web::to(refuse));
    routes.into_iter().fold(resource, Resource::route)
}
