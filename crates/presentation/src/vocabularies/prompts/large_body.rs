//! Bodies that may be larger than `limits.request_bytes`: whole conversations, and messages with images. The server
//! limits how many bytes of them it receives at the same time, and parses them outside the threads that serve streams.

use std::sync::Arc;

use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use tokenrail_domain::ImageFile;
use tokio::time::timeout;

use crate::api::{Api, LargeRequestPermit};
use crate::error::{Code, Problem};
use crate::query;

/// A body, and the room that it takes.
pub(crate) struct LargeBody {
    pub(crate) bytes: Bytes,
    pub(crate) room: Option<LargeRequestPermit>,
}

/// Receives a body of at most `most` bytes, and of no more than all bodies together may have: there would never be room
/// for it.
pub(crate) async fn receive(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    most: usize,
) -> Result<LargeBody, Problem> {
    let config = api.config();
    let most = most.min(config.chats_bytes.max(config.request_bytes));
    let Some(declared) = query::content_length(request) else {
        let read = receive_undeclared(api, payload, most);
        return timeout(config.body_timeout, read).await.map_err(|_| query::late())?;
    };
    // `read_within` refuses a body that is too large.
    let length = declared.min(most);
    let room = if length <= config.request_bytes { None } else { Some(api.large_request_permit(length)?) };
    // The time limit grows with the declared length: `body_timeout` for each `request_bytes` bytes.
    let parts = length.div_ceil(config.request_bytes.max(1)).max(1);
    let time = config.body_timeout.saturating_mul(u32::try_from(parts).unwrap_or(u32::MAX));
    let bytes = query::read_within(request, payload, most, time).await?;
    Ok(LargeBody { bytes, room })
}

/// Lets the images of a body keep its room until they are saved.
pub(crate) fn keep_room(images: &mut Vec<ImageFile>, room: Option<LargeRequestPermit>) {
    let Some(room) = room.map(Arc::new) else { return };
    let images_with_room = std::mem::take(images).into_iter().map(|image| image.holding(Arc::clone(&room)));
    *images = images_with_room.collect();
}

/// Receives a body whose length is not known before. It takes room only when it turns out to be large.
async fn receive_undeclared(api: &Api, mut payload: web::Payload, most: usize) -> Result<LargeBody, Problem> {
    let (mut bytes, mut room) = (BytesMut::new(), None);
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|_| query::unreadable())?;
        if most - bytes.len() < chunk.len() {
            return Err(query::too_large(most));
        }
        bytes.extend_from_slice(&chunk);
        if room.is_none() && api.config().request_bytes < bytes.len() {
            room = Some(api.large_request_permit(most)?);
        }
    }
    Ok(LargeBody { bytes: bytes.freeze(), room })
}

/// Parses a body with `parse`. Returns `None` if the server is shutting down. A large body is parsed on a blocking
/// thread, because it would delay the streams of this thread.
pub(crate) async fn parsed<T: Send + 'static>(
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

/// The problem if [`parsed`] returns `None`.
pub(crate) fn closing() -> Problem {
    Problem::new(Code::ShuttingDown, "reconnect")
}
