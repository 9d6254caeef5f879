//! Who is asking: the token, in one of the three ways in which it can be shown.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap};
use subtle::ConstantTimeEq;

use crate::config::PresentationConfig;
use crate::guard::Tickets;
use crate::query::{Form, Query, form};

/// The subprotocol that a WebSocket client offers beside its token, and gets as the answer.
pub(crate) const SUBPROTOCOL: &str = "tokenrail.v1";

/// What of a request tells who is asking.
pub(crate) struct Asking<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

/// Whether the request may go on.
pub(crate) fn is_known(config: &PresentationConfig, tickets: &Tickets, asking: &Asking<'_>) -> bool {
    let Some(token) = &config.token else { return true };
    if is_open(config, asking) {
        return true;
    }
    let mut shown = asking.headers.get_all(header::AUTHORIZATION);
    if let Some(authorization) = shown.next() {
        let bearer = authorization.to_str().ok().and_then(bearer);
        return bearer.is_some_and(|shown| is_token(token, shown)) && shown.next().is_none();
    }
    let socket = asking.path == "/ws";
    if socket
        && offered(asking.headers)
            .any(|offer| offer.strip_prefix("bearer.").is_some_and(|shown| is_token(token, shown)))
    {
        return true;
    }
    let stream = socket || form(asking.headers).is_ok_and(|form| form == Form::EventStream);
    if !(stream && asking.method == Method::GET) {
        return false;
    }
    let query = Query::read(asking.query).ok();
    query
        .as_ref()
        .and_then(|query| query.get("ticket"))
        .is_some_and(|ticket| tickets.redeem(ticket, asking.path))
}

/// Whether the path is read without a token.
fn is_open(config: &PresentationConfig, asking: &Asking<'_>) -> bool {
    if !matches!(*asking.method, Method::GET | Method::HEAD) {
        return false;
    }
    let configured = config.open_paths.iter().any(|open| match open.strip_suffix('*') {
        Some(beginning) => asking.path.starts_with(beginning),
        None => asking.path == open,
    });
    configured || matches!(asking.path, "/healthz" | "/readyz")
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let offers = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).filter_map(|offers| offers.to_str().ok());
    offers.flat_map(|offers| offers.split(',')).map(str::trim)
}

fn is_token(token: &str, shown: &str) -> bool {
    token.as_bytes().ct_eq(shown.as_bytes()).into()
}
