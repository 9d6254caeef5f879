//! Receives the bodies of requests, which may contain images and whole conversations.

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, web};
use tokenrail_application::{CommandKey, Prompt};

use crate::api::Api;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::openai::dto::{CreateCompletion, CreateResponse};
use crate::vocabularies::prompts::conversation_limits::ConversationLimits;
use crate::vocabularies::prompts::large_body::{self, LargeBody, closing, keep_room, parsed};

/// The header with the number of earlier tries of a request: 0 for the first try.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// A request that contains a prompt.
pub(super) trait Prompting: Send + 'static {
    fn prompt(&mut self) -> &mut Prompt;
}

impl Prompting for CreateResponse {
    fn prompt(&mut self) -> &mut Prompt {
        &mut self.prompt
    }
}

impl Prompting for CreateCompletion {
    fn prompt(&mut self) -> &mut Prompt {
        &mut self.prompt
    }
}

/// Receives a request, and reads it with `read`. The images keep the room of the body until they are saved.
pub(super) async fn receive<T: Prompting>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    read: fn(&[u8], ConversationLimits) -> Result<T, Problem>,
) -> Result<(T, Option<CommandKey>), Problem> {
    query::json_only(request)?;
    let limits = ConversationLimits::from(api.config());
    let LargeBody { bytes, room } = large_body::receive(api, request, payload, limits.body_bytes).await?;
    let key = query::idempotency_key(request.headers());
    let read = move |bytes: &[u8]| {
        let mut create = read(bytes, limits)?;
        let images = &mut create.prompt().images;
        let key = key?.map(|key| CommandKey { key, body: query::fingerprint(bytes, images) });
        keep_room(images, room);
        Ok((create, key))
    };
    parsed(api, bytes, read).await.ok_or_else(closing)?
}

/// Whether the client says that it has sent this request before. OpenAI's clients send no key with it.
pub(super) fn is_retry(headers: &HeaderMap) -> bool {
    let count = headers.get(RETRY_COUNT).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    count.is_some_and(|count| 0 < count)
}
