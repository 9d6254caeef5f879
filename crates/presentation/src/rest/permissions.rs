//! Answers to the questions of agents.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::AnswerOutcome;

use crate::api::Api;
use crate::dto::{self, PermissionBody, PermissionStateDto};
use crate::error::Problem;
use crate::query;

/// Answer a question of an agent
///
/// The agent asks, by an event `permission_request`, whether it may do something, and waits. The first answer counts.
/// It is given when the agent has taken it and that is saved.
#[utoipa::path(post, path = "/api/agents/{id}/permissions/{requestId}", tag = "agents", request_body = PermissionBody,
    params(("id" = String, Path), ("requestId" = String, Path, description = "The question's `requestId`")),
    responses((status = 200, body = PermissionStateDto, description = "The question is settled by this answer"),
        (status = 202, body = PermissionStateDto, description = "The agent has not taken the answer yet")))]
pub(crate) async fn permission(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (id, question) = path.into_inner();
    let id = query::agent_id(&id)?;
    let body = query::body(&request, payload, api.config()).await?;
    let answer = dto::permission(question, &body, api.config().json_depth)?;
    let outcome = api.service().answer(id, answer.clone()).await?;
    let mut response = match outcome {
        AnswerOutcome::Settled => HttpResponse::Ok(),
        AnswerOutcome::HandedOn => HttpResponse::Accepted(),
    };
    Ok(response.json(PermissionStateDto::new(answer, outcome)))
}
