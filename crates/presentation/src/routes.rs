//! The whole application: the native [`endpoints`], those of other vocabularies, and the guard in front of them.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, middleware, web};

use crate::api::Api;
use crate::error::Problem;
use crate::resource::{get_or_head, resource};
use crate::vocabularies::FOREIGN;
use crate::{endpoints, guard, openapi, rest, ws};

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
    config
        .service(resource("/openapi.json", "GET, HEAD", [get_or_head().to(openapi::document)]))
        .default_service(web::to(nothing));
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

async fn nothing(request: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::nothing_at(request.path()))
}
