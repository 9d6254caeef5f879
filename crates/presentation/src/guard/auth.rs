//! Authenticates requests: by the token in `Authorization`, in `X-Api-Key` or in a WebSocket subprotocol, by a ticket,
//! or by a session cookie.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use subtle::ConstantTimeEq;
use tokenrail_domain::Timestamp;

use super::origin::comes_from_own_page;
use crate::config::{PresentationConfig, Secret};
use crate::query::{self, Form, Query, form};
use crate::sessions::Sessions;
use crate::tickets::{Denied, Opening, Shown, Tickets};

/// The subprotocol that a WebSocket client offers in addition to its token. The server selects it.
pub(crate) const SUBPROTOCOL: &str = "tokenrail.v1";

/// A request that changes something and has a session cookie needs this header. A form or a link of another site cannot
/// send it, and a script of another origin needs a preflight for it, which the server refuses.
const CSRF_HEADER: &str = "tokenrail-csrf";

/// The header in which clients of several model APIs send their key, such as Anthropic's. It counts if a request has no
/// `Authorization`.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const SESSION_PATH: &str = "/api/session";
const LOGIN_CODES_PATH: &str = "/api/session/codes";

/// The parts of a request that authentication needs.
pub(crate) struct Asking<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) now: Timestamp,
}

/// Why a request is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It has the token or a session, needs none, or has a ticket that cannot resume a stream after a restart.
    Free,
    /// It has a ticket that opens an event stream. The guard saves this before the stream opens.
    Opens(Opening),
    /// It has a ticket that has opened this event stream before, and is valid until this time.
    Until(Timestamp),
    /// It has shown nothing yet. A Socket.IO client may send the token in its first packet.
    Later,
}

/// Authenticates a request.
///
/// # Errors
/// [`Denied`] if the request needs a token and has no valid token, ticket or session, or if its ticket cannot be
/// checked.
pub(crate) async fn check(
    config: &PresentationConfig,
    tickets: &Tickets,
    sessions: &Sessions,
    asking: &Asking<'_>,
) -> Result<Pass, Denied> {
    match shown(config, tickets, sessions, asking).await {
        // A session cookie that does not count is not a token either.
        Err(Denied::Unknown | Denied::OtherPage) if asking.path == query::SOCKET_IO => Ok(Pass::Later),
        checked => checked,
    }
}

async fn shown(
    config: &PresentationConfig,
    tickets: &Tickets,
    sessions: &Sessions,
    asking: &Asking<'_>,
) -> Result<Pass, Denied> {
    let Some(token) = config.token.as_ref().map(Secret::reveal) else { return Ok(Pass::Free) };
    if is_open(config, asking) {
        return Ok(Pass::Free);
    }
    let has_wrong_key = match in_header(asking.headers, token) {
        Some(InHeader::Token) => return Ok(Pass::Free),
        Some(InHeader::WrongAuthorization) => return Err(Denied::Failed),
        Some(InHeader::WrongKey) => true,
        None => false,
    };
    if asking.method == Method::POST && asking.path == SESSION_PATH && !has_wrong_key {
        // Without a token, the handler requires a login code.
        return Ok(Pass::Free);
    }
    match shown_elsewhere(config, token, (tickets, sessions), asking).await {
        // It may be the key of a gateway, so everything else counts too. But nobody may guess the token with it.
        Err(Denied::Unknown) if has_wrong_key => Err(Denied::Failed),
        shown => shown,
    }
}

/// Like [`shown`], for what is not in a header for the token.
async fn shown_elsewhere(
    config: &PresentationConfig,
    token: &str,
    (tickets, sessions): (&Tickets, &Sessions),
    asking: &Asking<'_>,
) -> Result<Pass, Denied> {
    let socket = query::is_socket_path(asking.path) && asking.method == Method::GET;
    let mut tokens = offered(asking.headers).filter_map(|offer| offer.strip_prefix("bearer.")).peekable();
    let offers = socket && tokens.peek().is_some();
    if offers && tokens.any(|shown| is_token(token, shown)) {
        return Ok(Pass::Free);
    }
    let stream = socket || form(asking.headers).is_ok_and(|form| form == Form::EventStream);
    let query = Query::read(asking.query).ok();
    match query.as_ref().and_then(|query| query.get("ticket")) {
        Some(ticket) if stream && asking.method == Method::GET => redeem(tickets, ticket, asking).await,
        _ if offers => Err(Denied::Failed),
        // A wrong cookie is no failed login: a browser sends an expired one with every request.
        _ if !sessions.accepts(asking.headers, asking.now) => Err(Denied::Unknown),
        // Otherwise, a session could prolong itself.
        _ if asking.path == LOGIN_CODES_PATH => Err(Denied::Unknown),
        _ if is_own_page(config, asking) => Ok(Pass::Free),
        _ => Err(Denied::OtherPage),
    }
}

/// Whether a page of this server has sent a request with a session cookie. Browsers add cookies to the requests of any
/// page; `SameSite=Strict` only excludes pages of other sites, not those on other ports of the same host.
fn is_own_page(config: &PresentationConfig, asking: &Asking<'_>) -> bool {
    let own = comes_from_own_page(config, asking.headers);
    let named = asking.headers.contains_key(header::ORIGIN);
    match *asking.method {
        // A WebSocket can change things, and browsers let any page open one.
        Method::GET if query::is_socket_path(asking.path) => own && named,
        Method::GET | Method::HEAD => own,
        _ => own && named && asking.headers.contains_key(CSRF_HEADER),
    }
}

/// Accepts the first use of a ticket, or a client that reconnects, which sends `Last-Event-ID`.
async fn redeem(tickets: &Tickets, ticket: &str, asking: &Asking<'_>) -> Result<Pass, Denied> {
    let origin = asking.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let shown = Shown { ticket, path: asking.path, origin, now: asking.now };
    match tickets.redeem(shown).await {
        Err(Denied::Failed) if asking.headers.contains_key("last-event-id") => {
            tickets.resume(shown).await.map(Pass::Until)
        }
        redeemed => redeemed.map(|opening| opening.map_or(Pass::Free, Pass::Opens)),
    }
}

/// Whether the path can be read without a token.
fn is_open(config: &PresentationConfig, asking: &Asking<'_>) -> bool {
    if !matches!(*asking.method, Method::GET | Method::HEAD) {
        return false;
    }
    let configured = config.open_paths.iter().any(|open| match open.strip_suffix('*') {
        Some(beginning) => asking.path.starts_with(beginning),
        None => asking.path == open,
    });
    configured || matches!(asking.path, "/healthz" | "/readyz") || asking.path.starts_with("/problems/")
}

/// The headers for the token of a request that has one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InHeader {
    Token,
    WrongAuthorization,
    /// Something else is in `X-Api-Key`, and `Authorization` is missing.
    WrongKey,
}

/// Whether a request has the token of the server in a header, or needs none.
pub(crate) fn has_token_in_header(config: &PresentationConfig, headers: &HeaderMap) -> bool {
    let token = config.token.as_ref().map(Secret::reveal);
    token.is_none_or(|token| in_header(headers, token) == Some(InHeader::Token))
}

fn in_header(headers: &HeaderMap, token: &str) -> Option<InHeader> {
    let (name, wrong) = if headers.contains_key(header::AUTHORIZATION) {
        (header::AUTHORIZATION, InHeader::WrongAuthorization)
    } else {
        (API_KEY, InHeader::WrongKey)
    };
    let mut sent = headers.get_all(name);
    let value = sent.next()?.to_str().ok();
    let shown = if wrong == InHeader::WrongKey { value } else { value.and_then(bearer) };
    let is_right = shown.is_some_and(|shown| is_token(token, shown)) && sent.next().is_none();
    Some(if is_right { InHeader::Token } else { wrong })
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

/// The subprotocols that a WebSocket client offers.
pub(crate) fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let offers = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).filter_map(|offers| offers.to_str().ok());
    offers.flat_map(|offers| offers.split(',')).map(str::trim)
}

/// Whether a client has shown the token of the server, if that has one.
pub(crate) fn has_token(config: &PresentationConfig, shown: &str) -> bool {
    config.token.as_ref().is_none_or(|token| is_token(token.reveal(), shown))
}

fn is_token(token: &str, shown: &str) -> bool {
    token.as_bytes().ct_eq(shown.as_bytes()).into()
}
