//! Creates responses: launches an agent, or sends a message to the agent of an earlier response.

use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{CommandKey, Launch, Prompt};
use tokenrail_domain::{ImageFile, TurnNumber};

use super::shared::Response;
use super::stream::open;
use super::whole::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::Problem;
use crate::large_body::{self, LargeBody, closing, parsed};
use crate::query;
use crate::vocabularies::openai::dto::{
    CreateResponse, CreateResponseBody, CreateResponseLimits, create_response,
};
use crate::vocabularies::openai::response_id::ResponseId;

/// The header with the number of earlier tries of a request: 0 for the first try.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// Create a response
///
/// Launches an agent or, with `previous_response_id`, sends a message to the agent of an earlier response.
#[utoipa::path(post, path = "/openai/v1/responses", tag = "openai", request_body = CreateResponseBody,
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$")),
    responses((status = 200,
        content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn create(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (create, key) = receive(&api, &request, payload).await?;
    let (stream, background) = (create.stream, create.background);
    let response = begin(&api, request.headers(), create, key).await?;
    if background && !stream {
        return Ok(HttpResponse::Ok().json(response.now(&api).await?));
    }
    let followed = response.follow(&api, &request).await?;
    Ok(if stream { open(&api, followed, 0) } else { whole(&api, followed) })
}

/// Receives a request. The images keep the room of the body until they are saved.
async fn receive(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<(CreateResponse, Option<CommandKey>), Problem> {
    query::json_only(request)?;
    let limits = CreateResponseLimits::from(api.config());
    let LargeBody { bytes, room } = large_body::receive(api, request, payload, limits.body_bytes).await?;
    let key = query::idempotency_key(request.headers());
    let read = move |bytes: &[u8]| {
        let mut create = create_response(bytes, limits)?;
        let images = &mut create.prompt.images;
        let key = key?.map(|key| CommandKey { key, body: query::fingerprint(bytes, images) });
        if let Some(room) = room.map(Arc::new) {
            let keep_room = |image: ImageFile| image.holding(Arc::clone(&room));
            *images = std::mem::take(images).into_iter().map(keep_room).collect();
        }
        Ok((create, key))
    };
    parsed(api, bytes, read).await.ok_or_else(closing)?
}

async fn begin(
    api: &Api,
    headers: &HeaderMap,
    create: CreateResponse,
    key: Option<CommandKey>,
) -> Result<Response, Problem> {
    let id = match create.previous {
        Some(previous) => go_on(api, headers, previous, create, key).await?,
        None => launch(api, create, key).await?,
    };
    Response::read(api, id).await?.ok_or_else(Problem::not_found)
}

async fn launch(api: &Api, create: CreateResponse, key: Option<CommandKey>) -> Result<ResponseId, Problem> {
    let CreateResponse { model, prompt: Prompt { text, images }, metadata, .. } = create;
    let (kind, model) = model.map_or((None, None), |choice| (Some(choice.kind), choice.model));
    let launch =
        Launch { kind, model, prompt: text, images, metadata, idempotency: key, ..Launch::default() };
    let launched = api.service().launch(launch).await?;
    Ok(ResponseId { agent: launched.agent.id, turn: TurnNumber::FIRST })
}

/// Sends a message to the agent of the newest response of a conversation. If another response follows, this is that
/// message once more, or it is refused: an agent has one history, and cannot go back in it.
async fn go_on(
    api: &Api,
    headers: &HeaderMap,
    previous: ResponseId,
    create: CreateResponse,
    key: Option<CommandKey>,
) -> Result<ResponseId, Problem> {
    let wrong = |detail: String| Problem::field("previous_response_id", detail);
    let known = Response::read(api, previous).await?;
    let agent = known.ok_or_else(|| wrong("no such response".to_owned()))?.agent;
    if create.model.is_some_and(|choice| choice.kind != agent.kind) {
        let detail = format!("the agent of this conversation is of the type {}", agent.kind);
        return Err(Problem::field("model", detail));
    }
    let next = ResponseId { turn: previous.turn.next(), ..previous };
    if let Some(following) = api.service().turn(next.agent, next.turn).await? {
        let is_again = key.is_some() || is_retry(headers);
        if is_again && following.prompt == create.prompt.text {
            return Ok(next);
        }
        return Err(wrong(format!(
            "another response follows this one: continue the conversation with its newest response (the next one is \
             {next})"
        )));
    }
    let accepted = api.service().send(agent.id, create.prompt, key).await?;
    Ok(ResponseId { turn: accepted.turn, ..previous })
}

/// Whether the client says that it has sent this request before. OpenAI's clients send no key with it.
fn is_retry(headers: &HeaderMap) -> bool {
    let count = headers.get(RETRY_COUNT).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    count.is_some_and(|count| 0 < count)
}
