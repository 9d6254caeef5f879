//! The whole application: the native [`endpoints`], those of other vocabularies, and the guard in front of them.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::{App, FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, middleware, web};

use crate::api::Api;
use crate::error::Problem;
use crate::foreign_refusals::RefusalFormats;
use crate::resource::{get_or_head, resource};
use crate::vocabularies::FOREIGN;
use crate::vocabularies::native::{endpoints, rest, socket_io, ws};
use crate::{guard, openapi};

/// The whole application: all routes behind the guard. Routes that are added to it are guarded too.
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

/// All routes. They must run behind the guard of [`app`], which also writes the bodies of problems.
pub fn routes(config: &mut web::ServiceConfig, api: Api) {
    if api.config().test_routes {
        config.service(resource("/ws/echo", "GET", [web::get().to(ws::echo::open)]));
        config.service(resource("/test/panic/{words}", "GET", [web::get().to(rest::panic::panic)]));
    }
    config.app_data(web::Data::new(api));
    endpoints::serve(config);
    socket_io::routes(config);
    config
        .service(resource("/openapi.json", "GET, HEAD", [get_or_head().to(openapi::document)]))
        .default_service(web::to(nothing));
    let formats = FOREIGN.iter().filter_map(|vocabulary| vocabulary.refusals).collect();
    config.app_data(web::Data::new(RefusalFormats(formats)));
    for vocabulary in FOREIGN {
        config.configure(vocabulary.routes);
    }
}

/// A read-only resource, such as a page or a file. It needs a token unless [`PresentationConfig::open_paths`] names it.
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

/// Answers a browser that opens a path that does not exist. Other clients get a problem. It is application data.
#[derive(Debug, Clone, Copy)]
pub struct MissingPage(pub fn(&HttpRequest) -> HttpResponse);

async fn nothing(request: HttpRequest) -> Result<HttpResponse, Problem> {
    match request.app_data::<MissingPage>() {
        Some(MissingPage(answer)) if is_for_people(&request) => Ok(answer(&request)),
        _ => Err(Problem::nothing_at(request.path())),
    }
}

/// Whether a browser opens the path, and not a script or another client.
fn is_for_people(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_api =
        ["/api", "/v1", "/ag-ui", "/openai", "/mcp"].iter().any(|api| request.path().starts_with(api));
    is_read && !is_api && accept.is_some_and(|accept| accept.contains("text/html"))
}
