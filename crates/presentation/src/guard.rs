//! Runs before and after every route: assigns the request id, checks access, and sets the headers of every response.
//! If the response is a stream, the guard also takes the connection from actix (`leaving`; `websocket.rs` lists the
//! next steps).

mod auth;
mod base_path;
mod bodies;
mod cors;
mod head;
mod leaving;
mod origin;

use std::rc::Rc;
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode, Version};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpResponse, web};
use tokio::time::Instant;

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::foreign_refusals::{RefusalFormats, Refused};
use crate::peer::peer;
use crate::socket::Watch;
use crate::tickets::Denied;

pub(crate) use auth::{SUBPROTOCOL, has_token, has_token_in_header, offered};
pub(crate) use origin::comes_from_own_page;

use auth::{Asking, Pass};
use bodies::{Answering, Incoming, Outgoing};
use cors::Cors;

/// Headers of every response, unless its handler has set them.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
    (header::CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin")),
];

/// A header of every response of a server without a token, so that this cannot go unnoticed.
const NO_AUTH: (HeaderName, HeaderValue) =
    (HeaderName::from_static("tokenrail-auth"), HeaderValue::from_static("none"));

/// A header of every response of a server that shares its database: its name.
const NODE: HeaderName = HeaderName::from_static("tokenrail-node");

/// Prevents clients of other APIs from retrying a request that will be refused again. Without this header, they decide
/// by the status alone.
const NO_RETRY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));

/// The error for a ticket that was issued to a page of another origin.
const OTHER_ORIGIN: &str = "the ticket was issued for another origin; a proxy must forward Origin unchanged";

/// The error for a ticket while the database cannot be used.
const UNCHECKED: &str =
    "the ticket cannot be checked, because the database cannot be used now; try again later";

/// The error for a request that a page of another site might have made the browser send.
const OTHER_PAGE: &str = "a session cookie is accepted only from a page of this server. A request that changes \
                          something needs the headers Tokenrail-Csrf: 1 and Origin; a WebSocket needs Origin. Other \
                          clients must send the token";

/// Passes a request to its route, or responds itself; then completes the response.
pub(crate) async fn guard<B: MessageBody + 'static>(
    api: web::Data<Api>,
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<Outgoing<EitherBody<B, BoxBody>>>, actix_web::Error> {
    base_path::remove(&api.config().base_path, &mut request);
    let watch = request.conn_data::<Rc<Watch>>().cloned();
    if let Some(watch) = &watch {
        if watch.has_left() {
            // The request was pipelined behind one whose response is a stream. No client would receive a response.
            return Ok(nobody(request));
        }
        watch.request();
    }
    let incoming = Incoming::of(&mut request);
    let (method, version) = (request.method().clone(), request.version());
    let cors = Cors::of(api.config(), request.headers());
    let response = respond(&api, &cors, request, next).await?;
    let response = decorate(&api, cors, version, response);
    let route = response.request().match_pattern();
    api.metrics().answered(route.as_deref().unwrap_or("none"), &method, response.status());
    let framing = leaving::framing(&response, version, &incoming);
    if let (Some(watch), Some(framing)) = (&watch, framing)
        && let Some(socket) = watch.leave()
    {
        let now = api.service().now();
        return Ok(leaving::leave(watch, socket, framing, &incoming, response, now));
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        incoming.skip().await;
    }
    if let (Some(watch), BodySize::Sized(bytes)) = (&watch, response.response().body().size()) {
        watch.answers(bytes);
    }
    let answering = Answering::new(watch, incoming);
    Ok(response.map_body(|_, body| Outgoing::new(body, answering)))
}

/// The response of the route, or of the guard itself if it rejects the request or answers it.
async fn respond<B: MessageBody + 'static>(
    api: &Api,
    cors: &Cors,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, actix_web::Error> {
    Ok(match admit(api, cors, &request).await {
        Ok(Admission::Enters(pass)) => {
            enter(api, &request, pass).await;
            next.call(request).await?.map_into_left_body()
        }
        Ok(Admission::Preflight) => {
            let answer = cors::preflight(request.headers());
            request.into_response(answer).map_into_right_body()
        }
        Err(problem) => request.error_response(problem).map_into_right_body(),
    })
}

/// Completes a response: the body of a problem, and the headers of every response.
fn decorate<B: MessageBody + 'static>(
    api: &Api,
    cors: Cors,
    version: Version,
    response: ServiceResponse<EitherBody<B, BoxBody>>,
) -> ServiceResponse<EitherBody<B, BoxBody>> {
    let id = api.request_id();
    let mut response = write_problem(response, &id, &api.config().base_path);
    finish_headers(response.headers_mut(), &id);
    base_path::add(&api.config().base_path, response.headers_mut());
    cors.finish(response.headers_mut());
    if version < Version::HTTP_11 {
        without_chunks(&mut response);
    }
    if api.config().token.is_none() {
        response.headers_mut().insert(NO_AUTH.0, NO_AUTH.1);
    }
    // The configuration accepts only names that can be the value of a header.
    if let Some(Ok(name)) = api.service().node_name().map(|name| HeaderValue::from_str(&name)) {
        response.headers_mut().insert(NODE, name);
    }
    response
}

fn nobody<B: MessageBody + 'static>(
    request: ServiceRequest,
) -> ServiceResponse<Outgoing<EitherBody<B, BoxBody>>> {
    let nothing = HttpResponse::BadRequest().finish();
    let response = request.into_response(nothing).map_into_right_body();
    response.map_body(|_, body| Outgoing::new(body, Answering::of_nobody()))
}

/// HTTP/1.0 has no chunks: if the length is not known in advance, the end of the connection ends the body.
fn without_chunks<B: MessageBody>(response: &mut ServiceResponse<B>) {
    if response.response().body().size() == BodySize::Stream {
        let head = response.response_mut().head_mut();
        head.no_chunking(true);
        head.set_connection_type(ConnectionType::Close);
    }
}

/// How the guard handles a request that it does not reject.
enum Admission {
    Enters(Pass),
    /// A CORS preflight request. The guard responds to it.
    Preflight,
}

/// The time at which a stream that was resumed with a ticket ends: when the ticket expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stay(pub(crate) Instant);

/// The request has shown neither a token nor a session. Only a Socket.IO client may do so: it shows the token later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WithoutToken;

/// Saves that a ticket opens a stream, or sets how long a resumed stream may stay open.
async fn enter(api: &Api, request: &ServiceRequest, pass: Pass) {
    match pass {
        Pass::Free => {}
        Pass::Later => drop(request.extensions_mut().insert(WithoutToken)),
        Pass::Opens(opening) => api.tickets().save(opening).await,
        Pass::Until(until) => {
            let left = until.0.saturating_sub(api.service().now().0);
            let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
            request.extensions_mut().insert(Stay(Instant::now() + left));
        }
    }
}

async fn admit(api: &Api, cors: &Cors, request: &ServiceRequest) -> Result<Admission, Problem> {
    let config = api.config();
    head::check_size(config, request)?;
    origin::check_host(config, request.headers(), request.uri().authority())?;
    origin::check_origin(config, request.headers())?;
    if cors.is_preflight(request) {
        return Ok(Admission::Preflight);
    }
    if request.headers().contains_key(header::CONTENT_ENCODING) {
        return Err(Problem::new(Code::ContentEncoding, "send the body without Content-Encoding"));
    }
    let asking = Asking {
        method: request.method(),
        path: request.path(),
        query: request.query_string(),
        headers: request.headers(),
        now: api.service().now(),
    };
    let checked = auth::check(config, api.tickets(), api.sessions(), &asking).await;
    checked.map(Admission::Enters).map_err(|denied| match denied {
        Denied::Unknown => Problem::unauthenticated(),
        Denied::Failed => api.failed_login(peer(request.peer_addr())),
        Denied::OtherOrigin => Problem::new(Code::OriginNotAllowed, OTHER_ORIGIN),
        Denied::OtherPage => Problem::new(Code::OriginNotAllowed, OTHER_PAGE),
        Denied::Unchecked => Problem::new(Code::StoreBusy, UNCHECKED),
    })
}

/// Writes the body of the response if it reports a problem. This happens here because only the guard knows the request
/// id. Below the path of a vocabulary with a format of its own, the problem has that format.
fn write_problem<B>(
    mut response: ServiceResponse<EitherBody<B, BoxBody>>,
    id: &str,
    base_path: &str,
) -> ServiceResponse<EitherBody<B, BoxBody>> {
    let problem = response.response().error().and_then(|error| error.as_error::<Problem>());
    let Some(problem) = problem else { return response };
    let request = response.request();
    let formats = request.app_data::<web::Data<RefusalFormats>>();
    let json = match formats.and_then(|formats| formats.at(request.path())) {
        None => problem.to_json(id, base_path),
        Some(refusals) => {
            let Refused { status, json } = (refusals.write)(problem);
            let is_final = !problem.code.retryable();
            let head = response.response_mut();
            *head.status_mut() = status;
            let headers = head.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if is_final {
                headers.insert(NO_RETRY.0, NO_RETRY.1);
            }
            json
        }
    };
    response.map_body(|_, _| EitherBody::right(BoxBody::new(json)))
}

fn finish_headers(headers: &mut HeaderMap, id: &str) {
    for (name, value) in HEADERS {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
}
