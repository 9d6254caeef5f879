//! The whole application: the native [`endpoints`], those of other vocabularies, and the guard in front of them.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::{App, FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, middleware, web};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::foreign_refusals::RefusalFormats;
use crate::resource::{get_or_head, resource};
use crate::vocabularies::FOREIGN;
use crate::vocabularies::native::{endpoints, rest, socket_io, ws};
use crate::{guard, openapi};

/// The first parts of the server's own paths, in all vocabularies. All other paths are those of the page.
pub const OWN_PATHS: [&str; 13] = [
    "ag-ui",
    "api",
    "healthz",
    "mcp",
    "metrics",
    "openai",
    "openapi.json",
    "problems",
    "readyz",
    "socket.io",
    "test",
    "v1",
    "ws",
];

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
    let foreign = FOREIGN.iter().filter_map(|vocabulary| vocabulary.refusals);
    let formats = foreign.chain([socket_io::REFUSALS]).collect();
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
        _ => Err(nothing_at(request.path())),
    }
}

/// The path does not exist. If a proxy seems to have changed the path, the problem says how to fix that.
fn nothing_at(path: &str) -> Problem {
    let mut parts = path.split('/').skip(1);
    let first = parts.next().unwrap_or_default();
    let detail = if ["agents", "agent-types", "chat", "tickets"].contains(&first) {
        "no such path, but it exists with the prefix /api: send the request to that path; if a proxy removes \
         /api, configure it to keep the prefix"
    } else if !OWN_PATHS.contains(&first) && parts.any(|part| OWN_PATHS.contains(&part)) {
        "no such path. If a proxy serves Tokenrail below a path, set \
         server.public_url to the address with that path, or configure the proxy to remove that path"
    } else {
        return Problem::not_found();
    };
    Problem::new(Code::NotFound, detail)
}

/// Whether a browser opens the path, and not a script or another client.
fn is_for_people(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let first = request.path().split('/').nth(1).unwrap_or_default();
    is_read && !OWN_PATHS.contains(&first) && accept.is_some_and(|accept| accept.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_browser_gets_the_page_at_any_path_that_is_not_of_the_api() {
        let gets_page = |path: &str| {
            is_for_people(
                &TestRequest::get().uri(path).insert_header(("accept", "text/html")).to_http_request(),
            )
        };
        for path in ["/", "/nowhere", "/apiary", "/agents/api"] {
            assert!(gets_page(path), "{path}");
        }
        for first in OWN_PATHS {
            assert!(!gets_page(&format!("/{first}")) && !gets_page(&format!("/{first}/nowhere")), "{first}");
        }
    }
}
