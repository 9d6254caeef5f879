//! Creates responses: launches an agent, or sends a message to the agent of an earlier response.

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{CommandKey, Launch, Prompt, Refusal, StoreError};
use tokenrail_domain::{Turn, TurnNumber, TurnOutcome, TurnState};

use super::conversation::{check_instructions, check_type, first_prompt};
use super::intake::{is_retry, receive};
use super::response_turn::{ResponseTurn, following, place, surely_following};
use super::stream::open;
use super::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::Problem;
use crate::vocabularies::openai::dto::{CreateResponse, CreateResponseBody, Previous, create_response};
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::openai::unsent_writer::UnsentWriter;

/// How many places a message may try, if the agent takes each of them for a turn that it begins by itself.
const PLACES: usize = 10;

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
/// message once more, or the client cannot know the other one, or the message is refused: an agent has one history, and
/// cannot go back in it.
async fn go_on(
    api: &Api,
    headers: &HeaderMap,
    continued: Previous,
    create: CreateResponse,
    key: Option<CommandKey>,
) -> Result<ResponseId, Problem> {
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
    let Prompt { text, images } = &create.prompt;
    let is_again = |following: &Turn| {
        is_retry && !following.is_own() && following.prompt == *text && following.images.len() == images.len()
    };
    let is_unknown = |following: &Turn| match continued {
        Previous::Named(_) => following.is_own(),
        // It also stops at the response that it asks for again.
        Previous::Repeated(_) => following.is_own() || has_failed(following) && !is_again(following),
    };
    let taken = |following: &Turn| {
        let next = ResponseId { turn: following.number, ..previous };
        if is_again(following) {
            return Ok(next);
        }
        Err(wrong(format!(
            "this response already has a successor ({next}); continue from the newest response of the conversation"
        )))
    };
    for _ in 0..PLACES {
        // With a key, the store says whether this message is already there.
        let (next, following) = match &key {
            Some(_) => (following(api, previous, is_unknown).await?.0, None),
            None => surely_following(api, previous, is_unknown).await?,
        };
        if let Some(following) = following {
            return taken(&following);
        }
        match api.service().send_as(agent.id, next, create.prompt.clone(), key.clone()).await {
            Ok(accepted) => return Ok(ResponseId { turn: accepted.turn, ..previous }),
            // Another request came first, at the same moment, or the agent has begun a turn by itself.
            Err(refusal @ Refusal::TurnTaken(_)) => match api.service().turn(agent.id, next).await? {
                Some(following) if is_unknown(&following) => {}
                Some(following) => return taken(&following),
                None => return Err(refusal.into()),
            },
            Err(refusal) => return Err(refusal.into()),
        }
    }
    // The client tries again.
    Err(Refusal::from(StoreError::Busy).into())
}

fn wrong(detail: String) -> Problem {
    Problem::field("previous_response_id", detail)
}

/// A client that repeats the items of its conversation may have none of a response that has failed: it cannot name that
/// response, and goes on without it.
fn has_failed(turn: &Turn) -> bool {
    matches!(turn.state, TurnState::Ended(outcome) if outcome != TurnOutcome::Completed)
}
