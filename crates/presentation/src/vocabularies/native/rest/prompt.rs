//! Receives requests with a prompt, which may have images.

use actix_web::{HttpRequest, web};
use tokenrail_application::{CommandKey, Launch, Prompt};
use tokenrail_domain::ImageFile;

use crate::api::Api;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::native::dto::requests::PromptLimits;
use crate::vocabularies::prompts::large_body::{self, LargeBody, closing, keep_room, parsed};

/// A request that may have images.
pub(super) trait WithImages: Send + 'static {
    fn images(&mut self) -> &mut Vec<ImageFile>;
}

impl WithImages for Launch {
    fn images(&mut self) -> &mut Vec<ImageFile> {
        &mut self.images
    }
}

impl WithImages for Prompt {
    fn images(&mut self) -> &mut Vec<ImageFile> {
        &mut self.images
    }
}

/// Receives a body and reads it with `read`. Returns it with its idempotency key. The images keep the room of the body
/// until they are saved, whether or not the client still waits for that.
pub(super) async fn receive<T: WithImages>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    read: fn(&[u8], PromptLimits) -> Result<T, Problem>,
) -> Result<(T, Option<CommandKey>), Problem> {
    query::json_only(request)?;
    let limits = PromptLimits::from(api.config());
    let LargeBody { bytes, room } = large_body::receive(api, request, payload, limits.body_bytes()).await?;
    let key = query::idempotency_key(request.headers());
    let read_whole = move |bytes: &[u8]| {
        let mut prompt = read(bytes, limits)?;
        let images = prompt.images();
        let key = key?.map(|key| CommandKey { key, body: query::fingerprint(bytes, images) });
        keep_room(images, room);
        Ok((prompt, key))
    };
    parsed(api, bytes, read_whole).await.ok_or_else(closing)?
}
