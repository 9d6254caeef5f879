//! Copies of an agent: export, import and replay.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::Needs;

use crate::api::Api;
use crate::by_id::ById;
use crate::error::Problem;
use crate::query;
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::agent::AgentDto;
use crate::vocabularies::native::dto::requests::{ImportBody, ReplayBody};
use crate::vocabularies::native::export::Export;
use crate::vocabularies::native::import;

/// Export an agent as one file
///
/// The file contains the agent's turns, its events, and every byte that its program printed. Running and queued
/// turns are not included.
#[utoipa::path(get, path = "/api/agents/{id}/export", tag = "copies", params(("id" = String, Path)),
    responses((status = 200, body = ImportBody, description = "The exported agent, as `import` reads it",
        headers(("Content-Disposition" = String)))))]
pub(crate) async fn export(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent = api.service().ended(query::agent_id(&id)?).await?;
    let file = format!("attachment; filename=\"tokenrail-{}.json\"", agent.id);
    let export = Export::new(api.service().clone(), agent);
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((header::CONTENT_DISPOSITION, file))
        .streaming(export.bytes()))
}

/// Import an exported agent
///
/// The import creates a new, read-only agent. A file that breaks a rule is rejected as a whole.
#[utoipa::path(post, path = "/api/agents/import", tag = "copies", request_body = ImportBody,
    responses((status = 201, description = "The agent is imported", body = AgentDto, headers(("Location" = String)))))]
pub(crate) async fn take_in(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    query::json_only(&request)?;
    let agent = import::import(&api, payload).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::LOCATION, format!("/api/agents/{}", agent.id)))
        .json(AgentDto::new(&agent, Needs::default(), api.service().home_of(&agent))))
}

/// Replay an agent with its original timing
///
/// The replay creates a new, read-only agent whose events appear at the original intervals. The time between turns
/// is skipped.
#[utoipa::path(post, path = "/api/agents/{id}/replay", tag = "copies", params(("id" = String, Path)),
    request_body(content = Option<ReplayBody>),
    responses((status = 201, description = "The replay is saved and starts", body = AgentDto,
        headers(("Location" = String)))))]
pub(crate) async fn replay(
    ById { api, id, request }: ById,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    let speed = match query::optional_body(&request, payload, api.config()).await? {
        Some(body) => dto::requests::replay_speed(&body, api.config().json_depth)?,
        None => 1.0,
    };
    let agent = api.service().replay(id, speed).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::LOCATION, format!("/api/agents/{}", agent.id)))
        .json(AgentDto::new(&agent, Needs::default(), api.service().home_of(&agent))))
}
