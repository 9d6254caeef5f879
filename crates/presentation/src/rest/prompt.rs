//! Receives requests with a prompt, which may have images.

use actix_web::{HttpRequest, web};
use bytes::Bytes;

use crate::api::Api;
use crate::error::Problem;
use crate::large_body::{self, closing, parsed};
use crate::query;
use crate::vocabularies::native::dto::requests::PromptLimits;

/// Receives a body, and reads it with `read`. Returns both.
pub(super) async fn receive<T: Send + 'static>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    read: fn(&[u8], PromptLimits) -> Result<T, Problem>,
) -> Result<(Bytes, T), Problem> {
    query::json_only(request)?;
    let limits = PromptLimits::from(api.config());
    let body = large_body::receive(api, request, payload, limits.body_bytes()).await?;
    let bytes = body.bytes.clone();
    let prompt = parsed(api, body.bytes.clone(), move |bytes| read(bytes, limits)).await;
    Ok((bytes, prompt.ok_or_else(closing)??))
}
