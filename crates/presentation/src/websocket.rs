//! What every WebSocket of this server shares: the handshake, the client's messages, and how a connection ends.
//!
//! After the handshake, the socket leaves actix. The same happens to event streams. Once:
//!
//! 1. The guard takes the socket from actix and hands it over with the body of the response (`guard/leaving.rs`).
//! 2. `listen.rs` finds it when actix's dispatcher has ended (`take_streaming`), and gives it to the worker's streams
//!    (`socket/streams.rs` `run`).
//!
//! Then each piece of the body takes this path: `socket/streams.rs` (`poll_all`) polls the streams that were woken, and
//! `socket/streaming.rs` (`poll_stream`) polls the body and writes its bytes to the socket. `guard/bodies.rs` reads the
//! client's bytes from the same socket.

mod close;
mod messages;

use actix_http::ws::HandshakeError;
use actix_web::body::{BodyStream, MessageBody as _};
use actix_web::http::Version;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _};

use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::guard::{SUBPROTOCOL, offered};
use crate::peer::peer;
use crate::waits::in_turns;
pub(crate) use close::{because_of, close_code, close_reply};
pub(crate) use messages::{Broken, Message, Messages};

/// The upgrade of a request to a WebSocket.
pub(crate) struct Handshake {
    pub(crate) response: HttpResponse,
    pub(crate) messages: Messages,
    pub(crate) place: StreamPlace,
}

/// Upgrades a request to a WebSocket. A message of the client may have at most `bytes_max` bytes.
pub(crate) fn handshake(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    bytes_max: usize,
) -> Result<Handshake, Problem> {
    check_version(request)?;
    let place = api.open_stream(peer(request.peer_addr()))?;
    let (response, messages) = upgrade(api, request, payload, bytes_max)?;
    Ok(Handshake { response, messages, place })
}

/// The same for a connection that has its place already, or takes it in another way.
pub(crate) fn upgrade(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    bytes_max: usize,
) -> Result<(HttpResponse, Messages), Problem> {
    check_version(request)?;
    let mut response = actix_http::ws::handshake(request.head()).map_err(handshake_problem)?;
    if offered(request.headers()).any(|protocol| protocol == SUBPROTOCOL) {
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        response.insert_header((header::SEC_WEBSOCKET_PROTOCOL, protocol));
    }
    let messages = Messages::new(api.clone(), payload.into_inner(), bytes_max);
    Ok((response.finish().map_into_boxed_body().into(), messages))
}

/// HTTP/1.0 has no upgrades (RFC 9110, section 7.8).
fn check_version(request: &HttpRequest) -> Result<(), Problem> {
    if request.version() < Version::HTTP_11 {
        return Err(handshake_problem(HandshakeError::NoConnectionUpgrade));
    }
    Ok(())
}

/// The response with these frames as its body.
pub(crate) fn with_frames(
    api: &Api,
    response: HttpResponse,
    frames: impl Stream<Item = Bytes> + 'static,
) -> HttpResponse {
    let frames = Box::pin(in_turns(frames.map(Ok), api.config().stream_turn_bytes));
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
        HandshakeError::GetMethodRequired | HandshakeError::BadWebsocketKey => Problem::new(
            Code::BadRequest,
            "the WebSocket handshake is invalid: it must be a GET with a valid Sec-WebSocket-Key",
        ),
    }
}
