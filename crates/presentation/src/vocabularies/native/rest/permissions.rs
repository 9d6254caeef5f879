//! Answers to permission requests.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::AnswerOutcome;

use crate::api::Api;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::permission::{PermissionBody, PermissionStateDto};

/// Answer a permission request
///
/// An agent that needs permission emits the event `permission_request` and waits. Only the first answer counts. The
/// response is sent when the answer has settled the request and is saved; otherwise, 202 is sent after
/// `limits.answer_timeout_s`.
#[utoipa::path(post, path = "/api/agents/{id}/permissions/{requestId}", tag = "agents", request_body = PermissionBody,
    params(("id" = String, Path), ("requestId" = String, Path, description = "The `requestId` of the permission request")),
    responses((status = 200, body = PermissionStateDto, description = "The answer has settled the request"),
        (status = 202, body = PermissionStateDto, description = "The answer has not settled the request yet")))]
pub(crate) async fn permission(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (id, request_id) = path.into_inner();
    let id = query::agent_id(&id)?;
    let body = query::body(&request, payload, api.config()).await?;
    let answer = dto::permission::answer(request_id, &body, api.config().json_depth)?;
    let outcome = api.service().answer(id, answer.clone()).await?;
    let mut response = match outcome {
        AnswerOutcome::Settled => HttpResponse::Ok(),
        AnswerOutcome::HandedOn => HttpResponse::Accepted(),
    };
    Ok(response.json(PermissionStateDto::new(answer, outcome)))
}
