//! Socket.IO: the events of the dialect `agent` for clients of Socket.IO 4, over WebSocket and long polling.
//!
//! Socket.IO has two layers. Engine.IO carries text packets over either transport, and pings. Socket.IO packets inside
//! them connect, emit events and acknowledge them. `docs/adr/0014-socket-io-by-hand.md` says why both are here and not
//! in a library.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`engine`] | Engine.IO packets, and the errors of a request |
//! | [`packet`] | Socket.IO packets |
//! | [`session`] | one client, whatever its transport: its packets, and the events for it |
//! | [`incoming`] | where the packets of a client come from |
//! | [`polled`] | the task of a session whose client polls |
//! | [`socket`] | a session over a WebSocket: from the beginning, or after an upgrade |
//! | [`handlers`] | the requests |
//!
//! A session produces output only when its transport takes it. So a slow client holds at most one page of events, and
//! needs no queue.

mod engine;
mod handlers;
mod incoming;
mod packet;
mod polled;
mod session;
mod socket;

use actix_web::web::{self, ServiceConfig};
use utoipa::OpenApi;
use utoipa::openapi::RefOr;

use super::dto::socket_io::EngineProblem;
use crate::query::SOCKET_IO;
use crate::refusals::{EVERYWHERE, add};
use crate::resource::resource;

const BAD_REQUEST: &str = "400";

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

/// The document of these routes. What the guard refuses is a problem, and everything else an error of Engine.IO.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Described::openapi();
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            let own = operation.responses.responses.remove(BAD_REQUEST);
            add(operation, &EVERYWHERE);
            let all = operation.responses.responses.get_mut(BAD_REQUEST);
            if let (Some(RefOr::T(own)), Some(RefOr::T(all))) = (own, all) {
                all.content.extend(own.content);
            }
        }
    }
    document
}
