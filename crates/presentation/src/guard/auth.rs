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
    if let Some((name, read)) = token_header(asking.headers) {
        let mut sent = asking.headers.get_all(name);
        let shown = sent.next().and_then(|value| value.to_str().ok()).and_then(read);
        let good = shown.is_some_and(|shown| is_token(token, shown)) && sent.next().is_none();
        return if good { Ok(Pass::Free) } else { Err(Denied::Failed) };
    }
    if asking.method == Method::POST && asking.path == SESSION_PATH {
        // Without a token, the handler requires a login code.
        return Ok(Pass::Free);
    }
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

/// Whether a request shows a token in a header, right or wrong.
pub(crate) fn shows_token(headers: &HeaderMap) -> bool {
    token_header(headers).is_some()
}

/// Reads the token out of the value of a header.
type ReadToken = fn(&str) -> Option<&str>;

/// The header in which a request shows a token, and how the token is read.
fn token_header(headers: &HeaderMap) -> Option<(HeaderName, ReadToken)> {
    if headers.contains_key(header::AUTHORIZATION) {
        return Some((header::AUTHORIZATION, bearer));
    }
    headers.contains_key(&API_KEY).then_some((API_KEY, |key| Some(key)))
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
