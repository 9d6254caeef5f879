//! WebSocket: one connection follows many agents.
//!
//! The frames of events are not sent by a session: the body of the upgraded response is a stream of bytes that are
//! frames already, shared by all who follow the agent. It is asked for more only when the socket takes more, so a
//! slow client holds up nobody and there is no queue for it.

mod answers;
mod close;
mod connection;
pub(crate) mod echo;
mod follow;
mod message_status;
mod messages;
mod outbox;
mod subscriptions;
mod throttle;
mod wishes;

use actix_http::ws::HandshakeError;
use actix_web::body::{BodyStream, MessageBody as _};
use actix_web::http::Version;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _};

use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::guard::{SUBPROTOCOL, offered, peer};
use crate::query::Query;
use crate::waits::in_turns;
pub(crate) use close::{because_of, close_code};
use connection::Connection;
pub(crate) use messages::{Broken, Message, Messages};
use wishes::Wishes;

/// Follow agents over a WebSocket
#[utoipa::path(get, path = "/ws", tag = "messages",
    params(("dialect" = Option<String>, Query,
            description = "`agent`, `message` or `stream`; `agent`, where it is left out"),
        ("batch" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "Collect frames for so many ms; 50, where it is empty"),
        ("throttle" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "In the dialect `stream`, let text out every so many ms; 4, where it is empty"),
        ("throttleBytes" = Option<u32>, Query, minimum = 16, maximum = 1_048_576,
            description = "How much text is let out at once; 4096, where it is left out"),
        ("packed" = Option<bool>, Query,
            description = "Consecutive deltas of one part of a message as one frame; `raw` of a subscription goes before it"),
        ("ticket" = Option<String>, Query, description = "Instead of the Authorization header")),
    responses((status = 101, description = "The frames are described in PROTOCOL.md")))]
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
    Ok(telling(&api, response, frames))
}

/// A request that becomes a WebSocket.
pub(crate) struct Handshake {
    pub(crate) response: HttpResponse,
    pub(crate) messages: Messages,
    pub(crate) place: StreamPlace,
}

/// Makes a WebSocket of a request, whose messages may have so many bytes.
pub(crate) fn handshake(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    bytes_max: usize,
) -> Result<Handshake, Problem> {
    // HTTP/1.0 cannot become anything else (RFC 9110, section 7.8).
    if request.version() < Version::HTTP_11 {
        return Err(handshake_problem(HandshakeError::NoConnectionUpgrade));
    }
    let place = api.open_stream(peer(request.peer_addr()))?;
    let mut response = actix_http::ws::handshake(request.head()).map_err(handshake_problem)?;
    if offered(request.headers()).any(|protocol| protocol == SUBPROTOCOL) {
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        response.insert_header((header::SEC_WEBSOCKET_PROTOCOL, protocol));
    }
    let messages = Messages::new(api.clone(), payload.into_inner(), bytes_max);
    Ok(Handshake { response: response.finish().map_into_boxed_body().into(), messages, place })
}

/// The answer whose body are these frames.
pub(crate) fn telling(
    api: &Api,
    response: HttpResponse,
    frames: impl Stream<Item = Bytes> + 'static,
) -> HttpResponse {
    let frames = in_turns(frames, api.config().stream_turn_bytes);
    let frames = Box::pin(frames.map(Ok::<_, actix_web::Error>));
    response.map_body(|_, _| BodyStream::new(frames).boxed())
}

fn handshake_problem(error: HandshakeError) -> Problem {
    match error {
        HandshakeError::NoWebsocketUpgrade
        | HandshakeError::NoConnectionUpgrade
        | HandshakeError::NoVersionHeader
        | HandshakeError::UnsupportedVersion => {
            Problem::new(Code::UpgradeRequired, "connect with a WebSocket client, version 13")
        }
        HandshakeError::GetMethodRequired | HandshakeError::BadWebsocketKey => {
            Problem::new(Code::BadRequest, "the handshake is not valid")
        }
    }
}
