//! Socket.IO: the events of the dialect `agent` for clients of Socket.IO 4, over WebSocket and long polling.
//!
//! Socket.IO has two layers. Engine.IO carries text packets over either transport, and pings. Socket.IO packets inside
//! them connect, emit events and acknowledge them. `docs/adr/0014-socket-io-by-hand.md` says why both are here and not
//! in a library.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`engine`] | Engine.IO packets, and the errors of a request |
//! | [`refusal`] | the format of errors, also of requests that reach no handler |
//! | [`packet`] | Socket.IO packets |
//! | [`session`] | one client, whatever its transport: its packets, and the events for it |
//! | [`heart`] | when a client gets pings, and when it must have answered |
//! | [`incoming`] | where the packets of a client come from |
//! | [`polled`] | the task of a session whose client polls |
//! | [`socket`] | a session over a WebSocket: from the beginning, or after an upgrade |
//! | [`handlers`] | the requests |
//!
//! A session produces output only when its transport takes it. So a slow client holds at most one page of events, and
//! needs no queue.

mod engine;
mod handlers;
mod heart;
mod incoming;
mod packet;
mod polled;
mod refusal;
mod session;
mod socket;

use actix_web::web::{self, ServiceConfig};
use utoipa::OpenApi;

use super::dto::socket_io::EngineProblem;
use crate::query::SOCKET_IO;
use crate::refusals::{EVERYWHERE, add, add_foreign};
use crate::resource::resource;

pub(crate) use refusal::REFUSALS;

pub(crate) fn routes(config: &mut ServiceConfig) {
    let routes = [web::get().to(handlers::get), web::post().to(handlers::post)];
    config.service(resource(SOCKET_IO, "GET, POST", routes));
}

#[derive(OpenApi)]
#[openapi(
    info(title = "", description = ""),
    paths(handlers::get, handlers::post),
    components(schemas(EngineProblem))
)]
struct Described;

/// The document of these routes.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Described::openapi();
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            add(operation, &EVERYWHERE);
            for code in EVERYWHERE {
                add_foreign(operation, code, "EngineProblem");
            }
        }
    }
    document
}
