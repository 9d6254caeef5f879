//! Copies of an agent: as a file, from a file, and played again.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};

use crate::api::Api;
use crate::dto::{self, AgentDto, ImportBody, ReplayBody};
use crate::error::Problem;
use crate::export::Export;
use crate::import;
use crate::query;

/// Export an agent as one file
///
/// All there is of it: turns, events, and what the agent printed, to the last byte. A turn that runs or waits is not
/// in it yet.
#[utoipa::path(get, path = "/api/agents/{id}/export", tag = "copies", params(("id" = String, Path)),
    responses((status = 200, body = ImportBody, description = "What an import takes",
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
/// It gets an id of its own, and nobody can talk with it. A file that breaks a rule is refused as a whole.
#[utoipa::path(post, path = "/api/agents/import", tag = "copies", request_body = ImportBody,
    responses((status = 201, description = "All of it is saved", body = AgentDto, headers(("Location" = String)))))]
pub(crate) async fn take_in(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    query::json_only(&request)?;
    let agent = import::import(&api, payload).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::LOCATION, format!("/api/agents/{}", agent.id)))
        .json(AgentDto::from(&agent)))
}

/// Play an agent again, with its timing
///
/// A new agent, whose events come when they are due; nobody can talk with it. The time between turns is left out.
#[utoipa::path(post, path = "/api/agents/{id}/replay", tag = "copies", params(("id" = String, Path)),
    request_body(content = Option<ReplayBody>),
    responses((status = 201, description = "It is saved and starts", body = AgentDto,
        headers(("Location" = String)))))]
pub(crate) async fn replay(
    api: web::Data<Api>,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    let speed = match query::optional_body(&request, payload, api.config()).await? {
        Some(body) => dto::replay_speed(&body, api.config().json_depth)?,
        None => 1.0,
    };
    api.admit_launch()?;
    let agent = api.service().replay(id, speed).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::LOCATION, format!("/api/agents/{}", agent.id)))
        .json(AgentDto::from(&agent)))
}
