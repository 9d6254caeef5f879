//! Sends messages to an agent, and responds in the form that the client wants.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::CommandKey;
use tokenrail_domain::{AgentId, Sequence, Turn};

use super::approval::approved;
use super::body::body;
use super::cancel::cancelled;
use super::ids::agent_id;
use super::refusal::answer;
use super::retry::begun_before;
use super::run::shown;
use super::stream::{FollowedTurn, Wanted, open};
use super::whole::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::{Code, Problem};
use crate::query;
use crate::vocabularies::letta::dto::{
    LettaCancelBody, LettaMessageBody, LettaResponse, Message, RunDto, SayHeaders, SayQuery, message,
    named_runs,
};
use crate::vocabularies::letta::run_id::RunId;

/// Send a message to an agent
///
/// Returns the whole response as one JSON document, or streams it if the body asks for that.
#[utoipa::path(post, path = "/v1/agents/{id}/messages", tag = "letta", request_body = LettaMessageBody,
    params(("id" = String, Path), SayQuery, SayHeaders),
    responses((status = 200,
        content((LettaResponse = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn say(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    answer(said(&api, &request, payload, false, |_| agent_id(&id)).await)
}

/// Send a message to an agent and stream the response
#[utoipa::path(post, path = "/v1/agents/{id}/messages/stream", tag = "letta", request_body = LettaMessageBody,
    params(("id" = String, Path), SayQuery, SayHeaders),
    responses((status = 200,
        content((LettaResponse = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn say_streaming(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    answer(said(&api, &request, payload, true, |_| agent_id(&id)).await)
}

/// Send a message to an agent and return its run
///
/// The response is the new run, which continues in the background.
#[utoipa::path(post, path = "/v1/agents/{id}/messages/async", tag = "letta", request_body = LettaMessageBody,
    params(("id" = String, Path)),
    responses((status = 200, body = RunDto)))]
pub(crate) async fn say_in_background(
    ById { api, id, request }: ById,
    payload: web::Payload,
) -> HttpResponse {
    let begun = async {
        let message = read(&api, &request, payload).await?;
        let tokens = message.tokens;
        let (turn, _) = send(&api, &request, agent_id(&id)?, message).await?;
        let run = RunId { agent: turn.agent, turn: turn.number, tokens };
        Ok(HttpResponse::Ok().json(shown(&api, run, &turn).await?))
    };
    answer(begun.await)
}

/// Sends a message to the agent that `to` finds. `streaming` is the default if the body does not say whether to stream.
pub(super) async fn said(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    streaming: bool,
    to: impl FnOnce(&Message) -> Result<AgentId, Problem>,
) -> Result<HttpResponse, Problem> {
    let message = read(api, request, payload).await?;
    let mut wanted = Wanted::of(request)?;
    wanted.tokens = message.tokens;
    wanted.pings = message.pings;
    wanted.cancel_on_disconnect |= message.cancel_on_disconnect;
    let streaming = message.streaming.unwrap_or(streaming);
    let (turn, after) = send(api, request, to(&message)?, message).await?;
    wanted.after = after;
    let followed = FollowedTurn::new(api, request, &turn).await?;
    if streaming { open(followed, wanted) } else { Ok(whole(followed, wanted)) }
}

async fn read(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<Message, Problem> {
    let body = query::body(request, payload, api.config()).await?;
    message(&body, api.config().json_depth)
}

/// Saves the message as a turn. A message with a known key or id is the turn that it became before. A message without
/// both, which the client marks as a retry, is the turn of its first try. An approval does not become a turn. Returns
/// the turn, and the last of its events that the client already has.
async fn send(
    api: &Api,
    request: &HttpRequest,
    agent: AgentId,
    message: Message,
) -> Result<(Turn, Sequence), Problem> {
    let Message { prompt, otid, approval, .. } = message;
    if let Some(approval) = approval {
        return approved(api, agent, &approval).await;
    }
    let key = match query::idempotency(request.headers(), prompt.as_bytes())? {
        None => otid.map(|otid| CommandKey { key: format!("otid:{otid}"), body: prompt.clone() }),
        key => key,
    };
    if key.is_none()
        && let Some(turn) = begun_before(api, request.headers(), agent, &prompt).await?
    {
        return Ok((turn, Sequence::START));
    }
    let accepted = api.service().send(agent, prompt.into(), key).await?;
    let turn = api.service().turn(agent, accepted.turn).await?;
    let turn = turn.ok_or_else(|| Problem::new(Code::NotFound, "no such agent"))?;
    Ok((turn, Sequence::START))
}

/// Cancel runs of an agent
///
/// Cancels the named runs, or all running and queued runs.
#[utoipa::path(post, path = "/v1/agents/{id}/messages/cancel", tag = "letta", request_body = Option<LettaCancelBody>,
    params(("id" = String, Path)),
    responses((status = 200, body = BTreeMap<String, String>)))]
pub(crate) async fn cancel(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    let cancelled = async {
        let body = body(&api, &request, payload).await?;
        let (runs, _) = named_runs(body.as_deref(), api.config().json_depth)?;
        cancelled(&api, agent_id(&id)?, runs).await
    };
    answer(cancelled.await)
}
