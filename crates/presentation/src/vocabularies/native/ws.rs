//! The native WebSocket: one connection follows many agents.
//!
//! The body of the upgraded response is a stream of finished frames. All followers of an agent share the bytes of its
//! events. The stream is polled only when the socket accepts more, so a slow client delays no other client and needs
//! no queue.
//!
//! actix does not write that body: `websocket.rs` says who does.
//!
//! The modules, in the order of the path of an event:
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`wishes`], [`follow`] | the options of a connection; begins to follow an agent |
//! | [`subscriptions`] | the agents that a connection follows, and the next update about one of them |
//! | [`connection`] | waits for updates, for the client's messages and for timers, and handles them |
//! | [`outbox`], [`throttle`] | the output: at once, throttled, or in batches |
//! | [`envelope`] | frames that are not about events of a journal |
//! | [`answers`], [`message_status`] | what clients send and ask besides subscriptions |
//! | [`echo`] | for tests of WebSockets |

mod answers;
mod connection;
pub(crate) mod echo;
pub(super) mod envelope;
pub(super) mod follow;
mod message_status;
mod outbox;
pub(super) mod subscriptions;
mod throttle;
mod wishes;

use actix_web::{HttpRequest, HttpResponse, web};

use crate::api::Api;
use crate::error::Problem;
use crate::query::Query;
use crate::websocket::{Handshake, handshake, with_frames};
use connection::Connection;
use wishes::Wishes;

/// Follow agents over a WebSocket
#[utoipa::path(get, path = "/ws", tag = "messages",
    params(("dialect" = Option<String>, Query,
            description = "`agent`, `message` or `stream`. Default: `agent`"),
        ("batch" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "Collect frames for this many milliseconds before sending them. `?batch` without a value \
                 means 50"),
        ("throttle" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "Dialect `stream`: send text at this interval, in milliseconds. `?throttle` without a value \
                 means 4"),
        ("throttleBytes" = Option<u32>, Query, minimum = 16, maximum = 1_048_576,
            description = "Maximum bytes of text to send at once. Default: 4096"),
        ("packed" = Option<bool>, Query,
            description = "Combine consecutive deltas of the same message part into one frame; a \
                 subscription's `raw` overrides it"),
        ("ticket" = Option<String>, Query, description = "A ticket, instead of the Authorization header")),
    responses((status = 101, description = "The frames are described in the protocol reference")))]
pub(crate) async fn open(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let wishes = Wishes::of(&Query::of(&request)?)?;
    let Handshake { response, messages, place } =
        handshake(&api, &request, payload, api.config().ws_message_bytes)?;
    let connection = Connection::new(Api::clone(&api), messages, wishes, place);
    let frames = futures_util::stream::unfold(Box::new(connection), |mut connection| async move {
        let bytes = connection.next().await?;
        Some((bytes, connection))
    });
    Ok(with_frames(&api, response, frames))
}
