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
mod outbox;
mod subscriptions;
mod throttle;
mod wishes;

use actix_http::ws::HandshakeError;
use actix_web::body::{BodyStream, MessageBody};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_ws::{AggregatedMessageStream, MessageStream};
use futures_util::stream;

use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::guard::{SUBPROTOCOL, peer};
use crate::query::Query;
pub(crate) use close::close_code;
use connection::Connection;
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
        ("ticket" = Option<String>, Query, description = "Instead of the Authorization header")),
    responses((status = 101, description = "The frames are described in PROTOCOL.md")))]
pub(crate) async fn open(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let wishes = Wishes::of(&Query::of(&request)?)?;
    let Handshake { response, messages, place } = handshake(&api, &request, payload)?;
    let api = Api::clone(&api);
    Ok(response.map_body(|_, body| {
        let connection = Connection::new(api, messages, wishes, place, body);
        let frames = stream::unfold(Box::new(connection), |mut connection| async move {
            let bytes = connection.next().await?;
            Some((Ok::<_, actix_web::Error>(bytes), connection))
        });
        BodyStream::new(Box::pin(frames)).boxed()
    }))
}

/// A request that has become a WebSocket.
struct Handshake {
    response: HttpResponse,
    messages: MessageStream,
    place: StreamPlace,
}

fn handshake(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<Handshake, Problem> {
    let place = api.open_stream(peer(request.peer_addr()))?;
    actix_http::ws::verify_handshake(request.head()).map_err(handshake_problem)?;
    let (response, _session, messages) = actix_ws::handle_with_protocols(request, payload, &[SUBPROTOCOL])
        .map_err(|_| Problem::new(Code::BadRequest, "the handshake has failed"))?;
    Ok(Handshake { response, messages, place })
}

/// Whole messages of at most so many bytes, in however many fragments they come.
fn whole(messages: MessageStream, bytes_max: usize) -> AggregatedMessageStream {
    messages.max_frame_size(bytes_max).aggregate_continuations().max_continuation_size(bytes_max)
}

pub(crate) fn handshake_problem(error: HandshakeError) -> Problem {
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
