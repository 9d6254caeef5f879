//! Receives chat requests. A chat request contains the whole conversation, so it can be large.

use actix_web::{HttpRequest, web};

use crate::api::Api;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::prompts::large_body::{self, closing, parsed};

/// Receives a request over HTTP and parses its body with `parse`.
pub(crate) async fn receive<T: Send + 'static>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, Problem> {
    query::json_or_text(request)?;
    let body = large_body::receive(api, request, payload, api.config().chat_bytes).await?;
    parsed(api, body.bytes.clone(), parse).await.ok_or_else(closing)
}
