//! Creates responses: launches an agent, or sends a message to the agent of an earlier response.

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{CommandKey, Launch, Prompt, Refusal};
use tokenrail_domain::{Turn, TurnNumber, TurnOutcome, TurnState};

use super::conversation::{check_instructions, check_type, first_prompt};
use super::intake::{is_retry, receive};
use super::response_turn::{ResponseTurn, place};
use super::stream::open;
use super::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::Problem;
use crate::vocabularies::openai::dto::{CreateResponse, CreateResponseBody, Previous, create_response};
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;

/// How many responses that have failed one after the other a client may not know.
const UNKNOWN_RESPONSES: usize = 100;

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
    let (create, key) = receive(&api, &request, payload, create_response).await?;
    let (stream, background) = (create.stream, create.background);
    let place = if background && !stream { None } else { Some(place(&api, &request)?) };
    let response = begin(&api, request.headers(), create, key).await?;
    let Some(place) = place else { return whole::now(&api, &response).await };
    let id = response.id();
    let followed = response.follow(&api, place).await?;
    if stream {
        return Ok(open(&api, followed, UnsentWriter::new(0)));
    }
    Ok(whole::whole(&api, id, followed, whole::response))
}

async fn begin(
    api: &Api,
    headers: &HeaderMap,
    create: CreateResponse,
    key: Option<CommandKey>,
) -> Result<ResponseTurn, Problem> {
    let id = match create.previous {
        Some(previous) => go_on(api, headers, previous, create, key).await?,
        None => launch(api, create, key).await?,
    };
    ResponseTurn::read(api, id).await?.ok_or_else(Problem::not_found)
}

async fn launch(api: &Api, create: CreateResponse, key: Option<CommandKey>) -> Result<ResponseId, Problem> {
    let CreateResponse { model, prompt: Prompt { text, images }, instructions, metadata, .. } = create;
    let prompt = first_prompt(instructions.as_deref(), None, &text);
    let (kind, model) = model.map_or((None, None), |choice| (Some(choice.kind), choice.model));
    let launch = Launch { kind, model, prompt, images, metadata, idempotency: key, ..Launch::default() };
    let launched = api.service().launch(launch).await?;
    Ok(ResponseId { agent: launched.agent.id, turn: TurnNumber::FIRST })
}

/// Sends a message to the agent of the newest response of a conversation. If another response follows, this is that
/// message once more, or the client cannot know the other one because it has failed, or the message is refused: an
/// agent has one history, and cannot go back in it.
async fn go_on(
    api: &Api,
    headers: &HeaderMap,
    continued: Previous,
    create: CreateResponse,
    key: Option<CommandKey>,
) -> Result<ResponseId, Problem> {
    let wrong = |detail: String| Problem::field("previous_response_id", detail);
    let (Previous::Named(previous) | Previous::Repeated(previous)) = continued;
    let known = ResponseTurn::read(api, previous).await?;
    let agent = known.ok_or_else(|| wrong("no such response".to_owned()))?.agent;
    check_type(&agent, create.model.as_ref())?;
    check_instructions(api, &agent, create.instructions.as_deref()).await?;
    if let Some(key) = &key
        && let Some(turn) = api.service().sent(agent.id, key).await?
    {
        return Ok(ResponseId { turn, ..previous });
    }
    let is_retry = key.is_none() && is_retry(headers);
    let (text, images) = (create.prompt.text.clone(), create.prompt.images.len());
    let is_again =
        |following: &Turn| is_retry && following.prompt == text && following.images.len() == images;
    let next = match continued {
        Previous::Named(_) => ResponseId { turn: previous.turn.next(), ..previous },
        Previous::Repeated(_) => after_failed(api, previous, &is_again).await?,
    };
    let taken = |following: &Turn| {
        if is_again(following) {
            return Ok(next);
        }
        Err(wrong(format!(
            "this response already has a successor ({next}); continue from the newest response of the conversation"
        )))
    };
    // With a key, the store says whether this message is already there.
    if key.is_none()
        && let Some(following) = api.service().turn(next.agent, next.turn).await?
    {
        return taken(&following);
    }
    match api.service().send_as(agent.id, next.turn, create.prompt, key).await {
        Ok(accepted) => Ok(ResponseId { turn: accepted.turn, ..previous }),
        // Another request came first, at the same moment.
        Err(refusal @ Refusal::TurnTaken(_)) => match api.service().turn(next.agent, next.turn).await? {
            Some(following) => taken(&following),
            None => Err(refusal.into()),
        },
        Err(refusal) => Err(refusal.into()),
    }
}

/// The place after a response, and after those that follow it and have failed. A client that repeats the items of its
/// conversation may have none of these: it cannot name them, and goes on without them. It also stops at the response
/// that it asks for again.
async fn after_failed(
    api: &Api,
    known: ResponseId,
    is_again: &impl Fn(&Turn) -> bool,
) -> Result<ResponseId, Problem> {
    let mut next = ResponseId { turn: known.turn.next(), ..known };
    for _ in 0..UNKNOWN_RESPONSES {
        let Some(following) = api.service().turn(next.agent, next.turn).await? else { break };
        let has_failed =
            matches!(following.state, TurnState::Ended(outcome) if outcome != TurnOutcome::Completed);
        if !has_failed || is_again(&following) {
            break;
        }
        next.turn = next.turn.next();
    }
    Ok(next)
}
