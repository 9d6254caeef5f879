//! CORS headers, so that pages of the origins in `server.allowed_origins` can read the responses.
//!
//! The guard does this itself, because access control and CORS share one policy and one order of checks. A middleware
//! around the guard, such as `actix-cors`, would respond to preflights before `Host` is checked. A middleware inside
//! the guard could not add headers to the responses by which the guard rejects requests.

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::origin;
use crate::config::PresentationConfig;

/// Methods that a page may use on any path. If a path does not support one, the page can read the 405 response.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");

/// Headers that a page may send: those that the server reads, and those that the client library, the AI SDK and Letta's
/// client send. If a header is missing here, browsers block the whole request. Browsers do not accept `*` for
/// `Authorization`.
const REQUEST_HEADERS: &str = "accept, authorization, cache-control, content-type, idempotency-key, if-none-match, \
                               last-event-id, mcp-method, mcp-name, mcp-protocol-version, user-agent, x-api-key, \
                               x-conversation-id, x-letta-source, x-project, x-project-id";

/// Letta's client describes itself in headers with this prefix. Each version adds more of them.
const STAINLESS: &str = "x-stainless-";

/// Headers of responses that a page may read, in addition to the few that it always may. Browsers accept no wildcard
/// for a part of a name.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Allow, Content-Disposition, ETag, Idempotent-Replayed, Link, Location, Retry-After, Stream-Closed, \
     Stream-Cursor, Stream-Next-Offset, Stream-Up-To-Date, \
     Tokenrail-Auth, Tokenrail-Head, Tokenrail-Node, Tokenrail-Since, Tokenrail-Truncated, Tokenrail-Up-To, WWW-Authenticate, X-Request-Id, X-Should-Retry, \
     X-Vercel-AI-UI-Message-Stream, X-Workflow-Run-Id, X-Workflow-Stream-Tail-Index",
);

/// How long a browser may cache the response to a preflight, in seconds.
const MAX_AGE_S: u32 = 600;

const VARY_PREFLIGHT: HeaderValue =
    HeaderValue::from_static("Access-Control-Request-Method, Access-Control-Request-Headers");
const ORIGIN: HeaderValue = HeaderValue::from_static("Origin");

/// What the response to one request says about origins.
pub(crate) struct Cors {
    /// The origin of the request, if it is listed.
    listed: Option<HeaderValue>,
    /// Whether the response depends on the origin.
    varies: bool,
}

impl Cors {
    /// Reads the origin of a request.
    pub(crate) fn of(config: &PresentationConfig, headers: &HeaderMap) -> Self {
        let mut origins = headers.get_all(header::ORIGIN);
        let origin =
            origins.next().filter(|origin| origin.to_str().is_ok_and(|it| origin::is_listed(config, it)));
        let listed = if origins.next().is_none() { origin.cloned() } else { None };
        Self { listed, varies: !config.allowed_origins.is_empty() }
    }

    /// Whether a browser asks if a page of a listed origin may send a request.
    pub(crate) fn is_preflight(&self, request: &ServiceRequest) -> bool {
        self.listed.is_some()
            && request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// Adds the CORS headers to any response. A page must also be able to read why its request is rejected.
    pub(crate) fn finish(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.append(header::VARY, ORIGIN);
        }
        if let Some(origin) = self.listed {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// The response to a preflight. Browsers send no token with a preflight.
pub(crate) fn preflight(asked: &HeaderMap) -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, request_headers(asked)))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_S))
        .insert_header((header::VARY, VARY_PREFLIGHT))
        .finish()
}

fn request_headers(asked: &HeaderMap) -> String {
    let asked = asked.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).filter_map(|names| names.to_str().ok());
    let names = asked.flat_map(|names| names.split(',')).map(str::trim);
    let about_itself = names.filter(|name| {
        let beginning = name.get(..STAINLESS.len()).unwrap_or_default();
        beginning.eq_ignore_ascii_case(STAINLESS) && HeaderName::from_bytes(name.as_bytes()).is_ok()
    });
    about_itself.fold(REQUEST_HEADERS.to_owned(), |all, name| all + ", " + name)
}
