//! Conversations. An agent of Tokenrail is one conversation, so each conversation has its own agent.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{Deletion, Launch};
use tokenrail_domain::{Sequence, TurnNumber, TurnState};

use super::agents::{known, list};
use super::body::{body, resume_body};
use super::cancel::cancelled;
use super::ids::{conversation_id, run as find_run};
use super::messages::said;
use super::range::Range;
use super::refusal::answer;
use super::stream::{FollowedTurn, Wanted, open};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::{Code, Problem};
use crate::query::Query;
use crate::vocabularies::letta::dto::{
    ConversationDto, LettaCancelBody, LettaMessageBody, LettaResponse, LettaResumeBody, PageQuery,
    SayHeaders, SayQuery, named_runs,
};

/// List conversations
#[utoipa::path(get, path = "/v1/conversations", tag = "letta",
    params(PageQuery,
        ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = [ConversationDto])))]
pub(crate) async fn conversations(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let listed = async {
        let query = Query::of(&request)?;
        let agents = match query.get("agent_id") {
            Some(agent) => {
                let range = Range::of(&query, &api)?;
                range.cut(vec![known(&api, agent).await?], |agent| agent.id.to_string())
            }
            None => list(&api, &query).await?,
        };
        Ok(HttpResponse::Ok().json(agents.iter().map(ConversationDto::from).collect::<Vec<_>>()))
    };
    answer(listed.await)
}

/// Create a conversation
///
/// If the agent has no messages yet, it becomes the conversation. Otherwise the request creates another agent of the
/// same type and model.
#[utoipa::path(post, path = "/v1/conversations", tag = "letta",
    params(("agent_id" = String, Query)),
    responses((status = 200, body = ConversationDto)))]
pub(crate) async fn begin(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let begun = async {
        let query = Query::of(&request)?;
        let Some(agent) = query.get("agent_id") else {
            return Err(Problem::parameter("agent_id", "must be present"));
        };
        let mut agent = known(&api, agent).await?;
        if 0 < agent.turn.0 || 0 < agent.queued {
            let launch =
                Launch { kind: Some(agent.kind), model: agent.model, name: agent.name, ..Launch::default() };
            agent = api.service().create(launch).await?;
        }
        Ok(HttpResponse::Ok().json(ConversationDto::from(&agent)))
    };
    answer(begun.await)
}

/// Get a conversation
#[utoipa::path(get, path = "/v1/conversations/{id}", tag = "letta",
    params(("id" = String, Path, description = "`default` is accepted only together with `agent_id`"), ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = ConversationDto)))]
pub(crate) async fn conversation(ById { api, id, request }: ById) -> HttpResponse {
    answer(shown(&api, &id, &request).await)
}

/// Accept an update of a conversation and ignore it
///
/// Nothing changes. The response is the unchanged conversation.
#[utoipa::path(patch, path = "/v1/conversations/{id}", tag = "letta",
    params(("id" = String, Path, description = "`default` is accepted only together with `agent_id`"), ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = ConversationDto)))]
pub(crate) async fn update_conversation(ById { api, id, request }: ById) -> HttpResponse {
    answer(shown(&api, &id, &request).await)
}

async fn shown(api: &Api, id: &str, request: &HttpRequest) -> Result<HttpResponse, Problem> {
    let query = Query::of(request)?;
    let agent = conversation_id(id, query.get("agent_id"))?;
    let agent = known(api, &agent.to_string()).await?;
    Ok(HttpResponse::Ok().json(ConversationDto::from(&agent)))
}

/// Stop a conversation and remove it from lists
#[utoipa::path(delete, path = "/v1/conversations/{id}", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn delete_conversation(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let deleted = async {
        api.service().delete(conversation_id(&id, None)?, Deletion::KeepHistory).await?;
        Ok(HttpResponse::Ok().json(()))
    };
    answer(deleted.await)
}

/// Send a message to a conversation
///
/// Streams the response, unless the body asks for one JSON document.
#[utoipa::path(post, path = "/v1/conversations/{id}/messages", tag = "letta", request_body = LettaMessageBody,
    params(("id" = String, Path), SayQuery, SayHeaders),
    responses((status = 200,
        content((LettaResponse = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn converse(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    let to =
        |message: &crate::vocabularies::letta::dto::Message| conversation_id(&id, message.agent.as_deref());
    answer(said(&api, &request, payload, true, to).await)
}

/// Resume the stream of a conversation
///
/// Streams the rest of a run: the run that the body names, or the latest run of the conversation.
#[utoipa::path(post, path = "/v1/conversations/{id}/stream", tag = "letta", request_body = Option<LettaResumeBody>,
    params(("id" = String, Path), ("format" = Option<String>, Query, pattern = "^(letta|kelpie|both)$")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(crate) async fn converse_again(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    let streamed = async {
        let resume = resume_body(&api, &request, payload).await?;
        let agent = conversation_id(&id, resume.agent.as_deref())?;
        let (tokens, turn) = if let Some(run) = &resume.run {
            let (run, turn) = find_run(&api, run).await?;
            (run.tokens, turn)
        } else {
            let newest = api.service().get(agent).await?;
            let number = TurnNumber(newest.turn.0 + newest.queued.min(1) * u32::from(!running(&newest)));
            let turn = api.service().turn(agent, number).await?;
            let over = |turn: &tokenrail_domain::Turn| matches!(turn.state, TurnState::Ended(_));
            match turn {
                // Sends pieces: they can follow what the client has, whether it has pieces or whole items.
                Some(turn) if resume.after.is_some() || !over(&turn) => (true, turn),
                _ => return Err(Problem::new(Code::BadRequest, "this conversation has no active run")),
            }
        };
        let wanted = Wanted {
            tokens: resume.tokens.unwrap_or(tokens),
            pings: resume.pings.unwrap_or(true),
            after: Sequence(resume.after.unwrap_or(0)),
            ..Wanted::of(&request)?
        };
        open(FollowedTurn::new(&api, &request, &turn).await?, wanted)
    };
    answer(streamed.await)
}

fn running(agent: &tokenrail_domain::Agent) -> bool {
    agent.status == tokenrail_domain::AgentStatus::Running
}

/// Cancel runs of a conversation
#[utoipa::path(post, path = "/v1/conversations/{id}/cancel", tag = "letta", request_body = Option<LettaCancelBody>,
    params(("id" = String, Path, description = "`default` is accepted only together with `agent_id`"), ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = BTreeMap<String, String>)))]
pub(crate) async fn cancel_conversation(
    ById { api, id, request }: ById,
    payload: web::Payload,
) -> HttpResponse {
    let stopped = async {
        let query = Query::of(&request)?;
        let body = body(&api, &request, payload).await?;
        let (runs, agent) = named_runs(body.as_deref(), api.config().json_depth)?;
        let agent = agent.as_deref().or_else(|| query.get("agent_id"));
        cancelled(&api, conversation_id(&id, agent)?, runs).await
    };
    answer(stopped.await)
}
