//! Takes a connection from actix if the response is a stream, because nothing follows a stream. [`Streaming`] then
//! writes the response.

use std::fmt::Write as _;
use std::rc::Rc;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::{ConnectionType, StatusCode, Version, header};
use actix_web::rt::net::TcpStream;
use actix_web::{HttpResponse, http};
use bytes::Bytes;
use tokenrail_domain::Timestamp;

use super::bodies::{Answering, Incoming, Outgoing};
use crate::socket::{Framing, Streaming, Watch};

/// How the response is framed without actix's dispatcher. `None` if the dispatcher writes the response.
pub(super) fn framing<B>(
    response: &ServiceResponse<B>,
    version: Version,
    incoming: &Incoming,
) -> Option<Framing> {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => Some(Framing::Upgraded),
        // The dispatcher may still have a part of the request.
        StatusCode::OK if !incoming.has_ended() => None,
        StatusCode::OK if content_type.is_none_or(|it| it != "text/event-stream") => None,
        StatusCode::OK if version < Version::HTTP_11 => Some(Framing::UntilClose),
        StatusCode::OK => Some(Framing::Chunked),
        _ => None,
    }
}

/// Hands the connection over to the response, for good. The returned response is empty: it tells the dispatcher that
/// nothing is left to do.
pub(super) fn leave<B: MessageBody + 'static>(
    watch: &Watch,
    socket: Rc<TcpStream>,
    framing: Framing,
    incoming: &Incoming,
    response: ServiceResponse<EitherBody<B, BoxBody>>,
    now: Timestamp,
) -> ServiceResponse<Outgoing<EitherBody<B, BoxBody>>> {
    if framing == Framing::Upgraded {
        incoming.go_on_with(Rc::clone(&socket));
    }
    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let head = head(&response, framing, now);
    let idle = watch.idle();
    watch.then(Streaming::new(socket, head, framing, BoxBody::new(body), idle.flush, idle.unread_body_bytes));
    if framing != Framing::Upgraded {
        response.head_mut().set_connection_type(ConnectionType::Close);
    }
    let nothing = EitherBody::right(BoxBody::new(()));
    ServiceResponse::new(request, response.set_body(Outgoing::new(nothing, Answering::of_nobody())))
}

/// The head of a response, as actix writes it.
fn head(response: &HttpResponse<()>, framing: Framing, now: Timestamp) -> Bytes {
    let status = response.status();
    let mut head =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    head.push_str(match framing {
        Framing::Upgraded => "connection: upgrade\r\n",
        Framing::Chunked => "connection: close\r\ntransfer-encoding: chunked\r\n",
        Framing::UntilClose => "connection: close\r\n",
    });
    let now = jiff::Timestamp::from_millisecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    if let Ok(date) = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now) {
        // Writing to a string cannot fail.
        let _ = write!(head, "date: {date}\r\n");
    }
    let mut head = head.into_bytes();
    let others = response.headers().iter().filter(|(name, _)| !is_of_connection(name));
    for (name, value) in others {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Whether a header describes the connection. [`head`] writes these headers itself, or omits them.
fn is_of_connection(name: &http::header::HeaderName) -> bool {
    [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH, header::DATE].contains(name)
}
