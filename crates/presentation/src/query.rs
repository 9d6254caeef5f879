//! Query strings, cursors, headers and bodies, as the handlers read them.

use std::time::Duration;

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, web};
use ring::digest::{SHA256, digest};
use tokenrail_application::CommandKey;
use tokenrail_domain::{AgentId, ImageFile, Sequence, TurnNumber};
use tokio::time::timeout;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};
use crate::hex::hex;

/// The number of items in one page of a list, if the client does not choose it.
const PAGE_ITEMS: usize = 100;

/// The decoded parameters of a query. Unknown parameters are ignored.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(request: &HttpRequest) -> Result<Self, Problem> {
        Self::read(request.query_string())
    }

    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        match web::Query::<Vec<(String, String)>>::from_query(text) {
            Ok(pairs) => Ok(Self(pairs.into_inner())),
            Err(_) => Err(Problem::new(
                Code::BadRequest,
                "the query is malformed; percent-encode its names and values as UTF-8",
            )),
        }
    }

    /// The first parameter of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All parameters of that name, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn since(&self) -> Result<Option<Sequence>, Problem> {
        Ok(self.get("since").map(cursor).transpose()?.map(Sequence))
    }

    /// The number of a turn, which need not exist.
    pub(crate) fn turn(&self, name: &'static str) -> Result<Option<TurnNumber>, Problem> {
        let wrong = || Problem::parameter(name, "must be a whole number, 0 or greater");
        self.get(name).map(|text| turn_number(text).ok_or_else(wrong)).transpose()
    }

    /// The parameter `limit`: a number of rows, at least 1. A larger number than `max` means `max`.
    pub(crate) fn limit(&self, max: usize) -> Result<Option<usize>, Problem> {
        self.count("limit", max)
    }

    /// The number of items in one page of a list: the parameter `limit`, or [`PAGE_ITEMS`].
    pub(crate) fn page_items(&self, max: usize) -> Result<usize, Problem> {
        Ok(self.limit(max)?.unwrap_or(PAGE_ITEMS.min(max)))
    }

    /// The parameter `last`: the number of newest events that the client requests, at least 1.
    pub(crate) fn last(&self) -> Result<Option<u64>, Problem> {
        Ok(self.count("last", usize::MAX)?.map(|last| last as u64))
    }

    fn count(&self, name: &'static str, max: usize) -> Result<Option<usize>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = || Problem::parameter(name, "must be a whole number, at least 1");
        if !is_whole(text) {
            return Err(wrong());
        }
        // A number that does not fit means the maximum.
        let count = text.parse().unwrap_or(usize::MAX).min(max);
        if count == 0 { Err(wrong()) } else { Ok(Some(count)) }
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::parameter(name, "must be true or false")),
        }
    }
}

/// Reads a cursor: a whole number, 0 or greater.
pub(crate) fn cursor(text: &str) -> Result<u64, Problem> {
    match text.parse() {
        Ok(cursor) if is_whole(text) => Ok(cursor),
        _ => Err(Problem::new(Code::CursorMalformed, "the cursor must be a whole number, 0 or greater")),
    }
}

/// Reads the number of a turn.
pub(crate) fn turn_number(text: &str) -> Option<TurnNumber> {
    // A number that does not fit becomes the largest number, and no turn has that either.
    is_whole(text).then(|| TurnNumber(text.parse().unwrap_or(u32::MAX)))
}

/// Whether a text has only digits: no sign, and no spaces.
fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads the position of an image.
pub(crate) fn position(text: &str) -> Option<u32> {
    turn_number(text).map(|number| number.0)
}

/// Reads an agent's id from a path. A malformed id is reported as an unknown agent.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, Problem> {
    text.parse().map_err(|_| Problem::new(Code::NotFound, "no such agent"))
}

/// Whether a WebSocket can be opened at this path with a token, a ticket or a session. That of Socket.IO is at
/// [`SOCKET_IO`]: its clients may also send the token in their first packet.
pub(crate) fn is_socket_path(path: &str) -> bool {
    matches!(path, "/ws" | "/api/chat")
}

/// The path of Socket.IO. Its clients append the slash.
pub(crate) const SOCKET_IO: &str = "/socket.io/";

/// Whether a ticket may open this path.
pub(crate) fn is_ticket_path(path: &str) -> bool {
    is_socket_path(path) || is_events_path(path)
}

/// Whether this is the path of an agent's events.
pub(crate) fn is_events_path(path: &str) -> bool {
    let agent = path.strip_prefix("/api/agents/").and_then(|rest| rest.strip_suffix("/events"));
    agent.is_some_and(|agent| agent.parse::<AgentId>().is_ok())
}

/// The `Idempotency-Key` of a command without images, with the body that it belongs to. `None` without a key.
pub(crate) fn idempotency(headers: &HeaderMap, body: &[u8]) -> Result<Option<CommandKey>, Problem> {
    let key = idempotency_key(headers)?;
    Ok(key.map(|key| CommandKey { key, body: fingerprint(body, &[]) }))
}

/// The `Idempotency-Key` of a command.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key");
    let Some(key) = keys.next() else { return Ok(None) };
    let legal = !key.is_empty() && key.len() <= 255 && key.as_bytes().iter().all(u8::is_ascii_graphic);
    match key.to_str() {
        Ok(key) if legal && keys.next().is_none() => Ok(Some(key.to_owned())),
        _ => Err(Problem::parameter("Idempotency-Key", "must be 1 to 255 visible ASCII characters")),
    }
}

/// What the store remembers of a body: all of it, or its hash if it has images, which are not stored twice. The hash of
/// a large body takes long, so it is not computed on a thread that serves streams.
pub(crate) fn fingerprint(body: &[u8], images: &[ImageFile]) -> String {
    if images.is_empty() {
        return String::from_utf8_lossy(body).into_owned();
    }
    format!("sha256:{}", hex(digest(&SHA256, body).as_ref()))
}

/// The formats in which a client can request events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    EventStream,
}

/// The format that the client accepts. It is an event stream only if `Accept` names it.
pub(crate) fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let mut json = !headers.contains_key(header::ACCEPT);
    for accept in headers.get_all(header::ACCEPT).filter_map(|value| value.to_str().ok()) {
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            if parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                continue;
            }
            match name.as_str() {
                "text/event-stream" => return Ok(Form::EventStream),
                "application/json" | "application/*" | "*/*" => json = true,
                _ => {}
            }
        }
    }
    if json {
        return Ok(Form::Json);
    }
    Err(Problem::new(Code::NotAcceptable, "send Accept: application/json or Accept: text/event-stream"))
}

/// Reads a JSON body within the configured limits.
pub(crate) async fn body(
    request: &HttpRequest,
    payload: web::Payload,
    config: &PresentationConfig,
) -> Result<web::Bytes, Problem> {
    json_only(request)?;
    read_within(request, payload, config.request_bytes, config.body_timeout).await
}

/// Rejects a body whose `Content-Type` is not JSON.
pub(crate) fn json_only(request: &HttpRequest) -> Result<(), Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Code::UnsupportedMediaType, "send Content-Type: application/json"));
    }
    Ok(())
}

/// Like [`json_only`], but also accepts `text/plain`, which browsers send for any text, and no `Content-Type`.
pub(crate) fn json_or_text(request: &HttpRequest) -> Result<(), Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    match essence {
        Some(essence) if !essence.eq_ignore_ascii_case("text/plain") => json_only(request),
        _ => Ok(()),
    }
}

/// Reads an optional JSON body within the configured limits. `null` counts as absent.
pub(crate) async fn optional_body(
    request: &HttpRequest,
    payload: web::Payload,
    config: &PresentationConfig,
) -> Result<Option<web::Bytes>, Problem> {
    optional_body_within(request, payload, config.request_bytes, config.body_timeout).await
}

/// The same for a body of at most `limit` bytes, which must arrive within `time`.
pub(crate) async fn optional_body_within(
    request: &HttpRequest,
    payload: web::Payload,
    limit: usize,
    time: Duration,
) -> Result<Option<web::Bytes>, Problem> {
    if request.headers().contains_key(header::CONTENT_TYPE) {
        json_only(request)?;
        let body = read_within(request, payload, limit, time).await?;
        return Ok(Some(body).filter(|body| !body.is_empty() && body.trim_ascii() != b"null"));
    }
    match read_within(request, payload, limit, time).await? {
        body if body.is_empty() => Ok(None),
        _ => Err(Problem::new(Code::UnsupportedMediaType, "send Content-Type: application/json")),
    }
}

/// The `Content-Length` of a request, if it is valid.
pub(crate) fn content_length(request: &HttpRequest) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most `limit` bytes, which must arrive within `time`.
pub(crate) async fn read_within(
    request: &HttpRequest,
    payload: web::Payload,
    limit: usize,
    time: Duration,
) -> Result<web::Bytes, Problem> {
    // If the announced length is too large, the client need not send the body first.
    if content_length(request).is_some_and(|length| limit < length) {
        return Err(too_large(limit));
    }
    match timeout(time, payload.to_bytes_limited(limit)).await {
        Ok(Ok(Ok(body))) => Ok(body),
        Ok(Ok(Err(_))) => Err(unreadable()),
        Ok(Err(_)) => Err(too_large(limit)),
        Err(_) => Err(late()),
    }
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("the body must be at most {limit} bytes"))
}

pub(crate) fn unreadable() -> Problem {
    Problem::new(Code::BadRequest, "cannot read the body")
}

pub(crate) fn late() -> Problem {
    Problem::new(Code::RequestTimeout, "the body did not arrive in time")
}

/// Maximum length of a name that an error repeats to the client, in bytes.
const NAME_BYTES: usize = 64;

/// A name from a client, for the error that rejects it. The server never sends back arbitrary text.
pub(crate) fn refused_name(name: &str) -> String {
    let is_name = |byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_name) {
        format!("\"{name}\"")
    } else {
        "(invalid name)".to_owned()
    }
}
