//! Receives chat requests. A chat request contains the whole conversation, so it can be large. The server therefore
//! limits how many bytes of large requests it receives at the same time, and it parses them outside the threads that
//! serve streams.

use actix_web::{HttpRequest, web};
use bytes::Bytes;

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::query;

/// Receives a request over HTTP and parses its body with `parse`.
pub(crate) async fn receive<T: Send + 'static>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, Problem> {
    query::json_or_text(request)?;
    let config = api.config();
    let declared = query::content_length(request);
    // `read_within` refuses a body that is too large.
    let length = declared.unwrap_or(config.chat_bytes).min(config.chat_bytes);
    let room = if length <= config.request_bytes { None } else { Some(api.large_request_permit(length)?) };
    // The time limit grows with the declared length: `body_timeout` for each `request_bytes` bytes.
    let parts = declared.map_or(1, |_| length.div_ceil(config.request_bytes.max(1)).max(1));
    let time = config.body_timeout.saturating_mul(u32::try_from(parts).unwrap_or(u32::MAX));
    let body = query::read_within(request, payload, config.chat_bytes, time).await?;
    let parsed = parsed(api, body, parse).await;
    drop(room);
    parsed.ok_or_else(|| Problem::new(Code::ShuttingDown, "reconnect"))
}

/// Parses a request with `parse`. Returns `None` if the server is shutting down. A large request is parsed on a
/// blocking thread, because it would delay the streams of this thread.
pub(super) async fn parsed<T: Send + 'static>(
    api: &Api,
    bytes: Bytes,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Option<T> {
    if bytes.len() <= api.config().request_bytes {
        return Some(parse(&bytes));
    }
    match tokio::task::spawn_blocking(move || parse(&bytes)).await {
        Ok(parsed) => Some(parsed),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}
