//! What routes are made of: the addresses, and what they answer to other methods.

use actix_web::guard::{Any, Get, Head};
use actix_web::{HttpResponse, Resource, Route, web};

use crate::error::Problem;

/// What can be read can be asked for its headers alone; the server leaves out the body. Streams cannot: to open one is
/// to follow an agent.
pub(crate) fn get_or_head() -> Route {
    web::route().guard(Any(Get()).or(Head()))
}

pub(crate) fn resource<const N: usize>(path: &str, allow: &'static str, routes: [Route; N]) -> Resource {
    let refuse = move || async move { Err::<HttpResponse, _>(Problem::method_not_allowed(allow)) };
    serving_or(web::resource(path), web::to(refuse), routes)
}

/// `refuse` answers the methods of no route.
pub(crate) fn serving_or<const N: usize>(resource: Resource, refuse: Route, routes: [Route; N]) -> Resource {
    routes.into_iter().fold(resource.default_service(refuse), Resource::route)
}
