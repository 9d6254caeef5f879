//! The requests of Socket.IO clients: handshakes, polls, bodies of packets, and WebSockets.

use std::sync::Arc;

use actix_web::http::header;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use futures_util::stream::unfold;

use super::engine::{CLOSE, Refused, body, is_body};
use super::incoming::{Incoming, pass_on};
use super::session::{Place, Session, new_id, opening};
use super::socket::{Direct, Upgrade};
use super::{engine, polled};
use crate::api::Api;
use crate::frames;
use crate::guard::WithoutToken;
use crate::peer::peer;
use crate::polled_sessions::{Output, PolledFault, PolledInbox, PolledSession};
use crate::query::{Query, read_within};
use crate::vocabularies::native::dto::socket_io::EngineProblem;
use crate::websocket::{upgrade, with_frames};

const TEXT: &str = "text/plain; charset=UTF-8";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Polling,
    WebSocket,
}

/// What a request asks for in its query.
struct Wish {
    transport: Transport,
    sid: Option<String>,
    is_known_version: bool,
}

impl Wish {
    fn of(request: &HttpRequest) -> Result<Self, Refused> {
        let query = Query::of(request)?;
        let transport = match query.get("transport") {
            Some("polling") => Transport::Polling,
            Some("websocket") => Transport::WebSocket,
            _ => return Err(Refused::TransportUnknown),
        };
        let sid = query.get("sid").map(str::to_owned);
        Ok(Self { transport, sid, is_known_version: query.get("EIO") == Some("4") })
    }
}

/// Connect with Socket.IO, or poll
#[utoipa::path(get, path = "/socket.io/", operation_id = "socket_io", tag = "socket-io", security(()),
    params(("EIO" = String, Query, description = "`4`"),
        ("transport" = String, Query, description = "`polling` or `websocket`"),
        ("sid" = Option<String>, Query, description = "The id of the session. A request without it opens one")),
    responses((status = 101, description = "Packets of Engine.IO"),
        (status = 200, content_type = "text/plain", body = String, description = "Packets of Engine.IO"),
        (status = 400, body = EngineProblem, description = "An error of Engine.IO"),
        (status = 503, body = EngineProblem, description = "Too many clients")))]
pub(crate) async fn get(api: web::Data<Api>, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    answer(&api, &request, payload).await.unwrap_or_else(Refused::response)
}

async fn answer(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<HttpResponse, Refused> {
    let Wish { transport, sid, is_known_version } = Wish::of(request)?;
    match (transport, sid) {
        (Transport::Polling, Some(sid)) => poll(&*session_of(api, &sid)?).await,
        (Transport::WebSocket, Some(sid)) => take_over(api, request, payload, session_of(api, &sid)?),
        _ if !is_known_version => Err(Refused::Version),
        (Transport::Polling, None) => open(api, request),
        (Transport::WebSocket, None) => connect(api, request, payload),
    }
}

/// Send packets of Socket.IO
#[utoipa::path(post, path = "/socket.io/", operation_id = "socket_io_send", tag = "socket-io", security(()),
    params(("EIO" = String, Query, description = "`4`"),
        ("transport" = String, Query, description = "`polling`"),
        ("sid" = String, Query, description = "The id of the session")),
    request_body(content = String, content_type = "text/plain", description = "Packets of Engine.IO"),
    responses((status = 200, content_type = "text/plain", body = String, description = "`ok`"),
        (status = 400, body = EngineProblem, description = "An error of Engine.IO"),
        (status = 408, body = EngineProblem, description = "The body did not arrive in time"),
        (status = 413, body = EngineProblem, description = "The body is too large")))]
pub(crate) async fn post(api: web::Data<Api>, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    take(&api, &request, payload).await.unwrap_or_else(Refused::response)
}

async fn take(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<HttpResponse, Refused> {
    let Wish { transport, sid, .. } = Wish::of(request)?;
    let polled = session_of(api, &sid.ok_or(Refused::HandshakeMethod)?)?;
    if transport != Transport::Polling || polled.has_socket() {
        return Err(Refused::BadRequest("the session uses the other transport; open a new session"));
    }
    let config = api.config();
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("application/octet-stream")) {
        polled.end().await;
        return Err(Refused::BadRequest("binary data is not supported; send JSON"));
    }
    let body = read_within(request, payload, config.ws_message_bytes, config.body_timeout).await?;
    if !is_body(&body) {
        polled.end().await;
        return Err(Refused::BadRequest("the body contains something that is not an Engine.IO packet"));
    }
    pass_on(&polled, body, config.body_timeout).await.map_err(refused)?;
    Ok(HttpResponse::Ok().content_type(TEXT).body("ok"))
}

fn session_of(api: &Api, sid: &str) -> Result<Arc<PolledSession>, Refused> {
    api.polled_sessions().get(sid).ok_or(Refused::SessionUnknown)
}

/// Opens a session whose client polls.
fn open(api: &Api, request: &HttpRequest) -> Result<HttpResponse, Refused> {
    let peer = peer(request.peer_addr());
    let place = Place::take(api, peer, is_known(request))?;
    let sid = new_id(api);
    let PolledInbox { asked, bodies, upgrading, listed } = api.polled_sessions().open(&sid);
    let session = Session::new(api, peer, place, Incoming::bodies(bodies));
    let closing = api.service().closing();
    drop(actix_web::rt::spawn(polled::serve(session, (asked, upgrading), listed, closing)));
    let packets = body(frames::payloads(&opening(api, &sid, &["websocket"])));
    Ok(HttpResponse::Ok().content_type(TEXT).body(packets))
}

async fn poll(polled: &PolledSession) -> Result<HttpResponse, Refused> {
    if polled.has_socket() {
        return Err(Refused::BadRequest("the session was upgraded to a WebSocket"));
    }
    let Output { frames, close } = polled.poll().await.map_err(refused)?;
    let packets = body(frames::payloads(&frames).chain(close.map(|_| CLOSE)));
    Ok(HttpResponse::Ok().content_type(TEXT).body(packets))
}

/// Opens a session over a WebSocket.
fn connect(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<HttpResponse, Refused> {
    let peer = peer(request.peer_addr());
    let (response, messages) = socket(api, request, payload)?;
    let place = Place::take(api, peer, is_known(request))?;
    let session = Session::new(api, peer, place, Incoming::Socket(Box::new(messages)));
    let direct = Direct::new(session, opening(api, &new_id(api), &[]));
    let frames = unfold(Box::new(direct), |mut direct| async move {
        let bytes = direct.next().await?;
        Some((bytes, direct))
    });
    Ok(with_frames(api, response, frames))
}

/// Lets a WebSocket take over a session whose client has polled. The session has its place already.
fn take_over(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    polled: Arc<PolledSession>,
) -> Result<HttpResponse, Refused> {
    let (response, messages) = socket(api, request, payload)?;
    let upgrade = Upgrade::new(api, polled, messages);
    let frames = unfold(Box::new(upgrade), |mut upgrade| async move {
        let bytes = upgrade.next().await?;
        Some((bytes, upgrade))
    });
    Ok(with_frames(api, response, frames))
}

fn socket(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<(HttpResponse, crate::websocket::Messages), Refused> {
    upgrade(api, request, payload, api.config().ws_message_bytes)
        .map_err(|_| Refused::BadRequest("the transport `websocket` requires a WebSocket handshake"))
}

/// Whether the request has shown a token or a session, or needs none.
fn is_known(request: &HttpRequest) -> bool {
    request.extensions().get::<WithoutToken>().is_none()
}

fn refused(fault: PolledFault) -> Refused {
    match fault {
        PolledFault::Gone => engine::Refused::SessionUnknown,
        PolledFault::Overlap => Refused::BadRequest("another request of this session is in progress"),
        PolledFault::TooSlow => {
            Refused::BadRequest("the client does not poll for responses; poll before you send more")
        }
    }
}
