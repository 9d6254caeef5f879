//! The native API on one screen: for each path the methods, their handlers, and the problems that are specific to them.

use actix_web::web;
use utoipa::OpenApi;

use super::{rest, ws};
use crate::error::Code;
use crate::refusals::add_problems;
use crate::resource::{get_or_head, resource};

/// Generates three things from the table: the routes, their part of the OpenAPI document, and the problems of each
/// route. `upgrade` is a `GET` without `HEAD`.
macro_rules! endpoints {
    ($($path:literal {
        $first:ident $($handler:ident)::+ [$($code:ident)*]
        $(, $method:ident $($more:ident)::+ [$($other:ident)*])* $(,)?
    })*) => {
        /// Adds the routes.
        pub(crate) fn serve(config: &mut web::ServiceConfig) {
            $(config.service(resource(
                $path,
                concat!(endpoints!(@allow $first) $(, ", ", endpoints!(@allow $method))*),
                [
                    endpoints!(@route $first).to($($handler)::+)
                    $(, endpoints!(@route $method).to($($more)::+))*
                ],
            ));)*
        }

        #[derive(OpenApi)]
        #[openapi(
            info(title = "", description = ""),
            paths($($($handler)::+, $($($more)::+,)*)*)
        )]
        struct Described;

        /// The problems that are specific to this operation.
        fn own(method: &str, path: &str) -> &'static [Code] {
            match (method, path) {
                $(
                    (endpoints!(@word $first), $path) => &[$(Code::$code),*],
                    $((endpoints!(@word $method), $path) => &[$(Code::$other),*],)*
                )*
                _ => &[],
            }
        }
    };
    (@route get) => { get_or_head() };
    (@route upgrade) => { web::get() };
    (@route post) => { web::post() };
    (@route patch) => { web::patch() };
    (@route delete) => { web::delete() };
    (@allow get) => { "GET, HEAD" };
    (@allow upgrade) => { "GET" };
    (@allow post) => { "POST" };
    (@allow patch) => { "PATCH" };
    (@allow delete) => { "DELETE" };
    (@word get) => { "get" };
    (@word upgrade) => { "get" };
    (@word post) => { "post" };
    (@word patch) => { "patch" };
    (@word delete) => { "delete" };
}

/// The part of the OpenAPI document about these endpoints.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Described::openapi();
    add_problems(&mut document, |method, path| own(method, path).to_vec());
    document
}

endpoints! {
    "/api/agents" {
        get rest::agents::list [ValidationFailed],
        post rest::agents::launch [
            RunnerUnknown CwdNotAllowed ImagesNotAccepted IdempotencyMismatch NodeUnknown NodeUnavailable
        ],
    }
    "/api/agents/active" { get rest::agents::active [] }
    "/api/agents/import" { post rest::copies::take_in [] }
    "/api/agents/{id}" {
        get rest::agents::get [],
        patch rest::agents::edit [AgentDeleted],
        delete rest::agents::delete [ValidationFailed],
    }
    "/api/agents/{id}/status" { get rest::agents::status [] }
    "/api/agents/{id}/messages" {
        get rest::events::messages [CursorMalformed CursorAhead ValidationFailed],
        post rest::events::send [
            AgentDeleted AgentReadOnly ImagesNotAccepted QueueFull IdempotencyMismatch NodeUnavailable
        ],
    }
    "/api/agents/{id}/events" {
        get rest::events::events [CursorMalformed CursorAhead ValidationFailed NotAcceptable]
    }
    "/api/agents/{id}/turns" { get rest::turns::turns [ValidationFailed] }
    "/api/agents/{id}/turns/{n}" {
        get rest::turns::turn [],
        delete rest::turns::withdraw [TurnStarted],
    }
    "/api/agents/{id}/turns/{n}/images/{k}" { get rest::images::image [] }
    "/api/agents/{id}/changes" { get rest::changes::changes [ValidationFailed CapacityExhausted] }
    "/api/agents/{id}/changes/patch" {
        get rest::changes::patch [ValidationFailed ChangesUnavailable CapacityExhausted]
    }
    "/api/agents/{id}/export" { get rest::copies::export [AgentActive] }
    "/api/agents/{id}/replay" { post rest::copies::replay [AgentActive] }
    "/api/agents/{id}/cancel" { post rest::agents::cancel [ValidationFailed] }
    "/api/agents/{id}/permissions/{requestId}" { post rest::permissions::permission [AlreadyResolved NodeUnavailable] }
    "/api/questions" { get rest::questions::questions [ValidationFailed] }
    "/api/agent-types" { get rest::service::types [] }
    "/api/nodes" { get rest::nodes::nodes [] }
    "/api/nodes/{id}" { delete rest::nodes::forget [NodeAlive] }
    "/api/server" { get rest::service::server [] }
    "/api/tickets" { post rest::service::ticket [] }
    "/api/session" { post rest::session::start [], delete rest::session::end [] }
    "/api/session/codes" { post rest::session::code [] }
    "/ws" { upgrade ws::open [UpgradeRequired DialectUnknown ValidationFailed CapacityExhausted] }
    "/healthz" { get rest::service::health [] }
    "/readyz" { get rest::service::ready [] }
    "/metrics" { get rest::service::metrics [] }
    "/problems/{code}" { get rest::problems::problem [] }
}
