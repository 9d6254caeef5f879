//! Builds the resources of routes: their paths, and their response to methods that they do not support.

use actix_web::guard::{Any, Get, Head};
use actix_web::{HttpResponse, Resource, Route, web};

use crate::error::Problem;

/// A route for GET and HEAD. The server omits the body for HEAD. Streams do not support HEAD, because opening a stream
/// follows an agent.
pub(crate) fn get_or_head() -> Route {
    web::route().guard(Any(Get()).or(Head()))
}

pub(crate) fn resource<const N: usize>(path: &str, allow: &'static str, routes: [Route; N]) -> Resource {
    let refuse = move || async move { Err::<HttpResponse, _>(Problem::method_not_allowed(allow)) };
    serving_or(web::resource(path), web::to(refuse), routes)
}

/// `refuse` handles all methods without a route.
pub(crate) fn serving_or<const N: usize>(resource: Resource, refuse: Route, routes: [Route; N]) -> Resource {
    routes.into_iter().fold(resource.default_service(refuse), Resource::route)
}
