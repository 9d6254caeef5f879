//! Agents, models, health, and the lists that are always empty here.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{AgentFilter, Deletion, Launch};
use tokenrail_domain::Agent;

use super::body::body;
use super::ids::agent_id;
use super::range::Range;
use super::refusal::answer;
use crate::api::Api;
use crate::by_id::ById;
use crate::error::Problem;
use crate::query::Query;
use crate::vocabularies::letta::dto::{
    HealthDto, LettaAgentBody, LettaAgentDto, ModelDto, PageQuery, created,
};

/// Check whether the server speaks the Letta protocol
#[utoipa::path(get, path = "/v1/health", tag = "letta",
    responses((status = 200, body = HealthDto)))]
pub(crate) async fn health() -> HttpResponse {
    HttpResponse::Ok().json(HealthDto::new())
}

/// List the agent types as Letta models
///
/// The model that a client chooses selects the agent type. The default type comes first, for clients that take the
/// first model.
#[utoipa::path(get, path = "/v1/models", tag = "letta",
    responses((status = 200, body = [ModelDto])))]
pub(crate) async fn models(api: web::Data<Api>) -> HttpResponse {
    let mut types = api.service().types().await;
    types.sort_by_key(|info| !info.default);
    HttpResponse::Ok().json(types.iter().map(ModelDto::from).collect::<Vec<_>>())
}

/// The lists of an agent that are always empty here, because the agent program manages what they would contain.
pub(crate) const NO_LISTS: [&str; 7] =
    ["secrets", "mcp-servers", "repositories", "tools", "blocks", "core-memory/blocks", "folders"];

/// Return an empty list
///
/// Tools, memory blocks and secrets belong to the agent program, so this list is always empty.
#[utoipa::path(get, path = "/v1/agents/{id}/secrets", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = [serde_json::Value])))]
pub(crate) async fn no_list(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let known = async {
        api.service().get(agent_id(&id)?).await?;
        Ok(HttpResponse::Ok().json([(); 0]))
    };
    answer(known.await)
}

/// List agents in the Letta format
#[utoipa::path(get, path = "/v1/agents", tag = "letta",
    params(PageQuery,
        ("name" = Option<String>, Query)),
    responses((status = 200, body = [LettaAgentDto])))]
pub(crate) async fn agents(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let listed = async {
        let query = Query::of(&request)?;
        let agents = list(&api, &query).await?;
        Ok(HttpResponse::Ok().json(agents.iter().map(LettaAgentDto::from).collect::<Vec<_>>()))
    };
    answer(listed.await)
}

/// Reads a page of agents. Fields that are too long for a list are cut. Letta's format cannot show that.
pub(super) async fn list(api: &Api, query: &Query) -> Result<Vec<Agent>, Problem> {
    let range = Range::of(query, api)?;
    let after = range.after.as_deref().map(agent_id).transpose()?;
    let before = range.before.as_deref().map(agent_id).transpose()?;
    let (older_than, newer_than) = if range.ascending { (before, after) } else { (after, before) };
    // A page before a cursor is read from the cursor backwards.
    let backwards = before.is_some();
    let filter = AgentFilter {
        name: query.get("name").map(str::to_owned),
        before: older_than,
        after: newer_than,
        oldest_first: range.ascending != backwards,
        limit: range.limit,
        ..AgentFilter::default()
    };
    let mut agents = api.service().list(filter).await?.items;
    if backwards {
        agents.reverse();
    }
    Ok(agents.into_iter().map(|listed| listed.agent).collect())
}

/// Get an agent in the Letta format
#[utoipa::path(get, path = "/v1/agents/{id}", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = LettaAgentDto)))]
pub(crate) async fn agent(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    answer(shown(&api, &id).await)
}

/// Accept an update of an agent and ignore it
///
/// The agent program keeps its own prompt and tools, so nothing changes. The response is the unchanged agent.
#[utoipa::path(patch, path = "/v1/agents/{id}", tag = "letta", request_body = Option<LettaAgentBody>,
    params(("id" = String, Path)),
    responses((status = 200, body = LettaAgentDto)))]
pub(crate) async fn update_agent(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    let updated = async {
        let body = body(&api, &request, payload).await?;
        created(body.as_deref(), api.config().json_depth)?;
        shown(&api, &id).await
    };
    answer(updated.await)
}

/// Create an idle agent
#[utoipa::path(post, path = "/v1/agents", tag = "letta", request_body = Option<LettaAgentBody>,
    responses((status = 200, body = LettaAgentDto)))]
pub(crate) async fn create(api: web::Data<Api>, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let made = async {
        let body = body(&api, &request, payload).await?;
        let (launch, model) = created(body.as_deref(), api.config().json_depth)?;
        let launch = with_model(&api, launch, model.as_deref()).await;
        let agent = api.service().create(launch).await?;
        Ok(HttpResponse::Ok().json(LettaAgentDto::from(&agent)))
    };
    answer(made.await)
}

/// Applies the handle of a model, which selects the agent type: `type`, or `type/model`. A handle of any other model is
/// ignored. The configured default type is then used, and the returned agent shows it.
async fn with_model(api: &Api, launch: Launch, handle: Option<&str>) -> Launch {
    let Some(handle) = handle else { return launch };
    let (kind, model) = match handle.split_once('/') {
        Some((kind, model)) => (kind, Some(model)),
        None => (handle, None),
    };
    if api.service().types().await.iter().any(|info| info.name == kind) {
        let legal = |model: &&str| {
            !model.starts_with('-') && model.len() <= 128 && model.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let model = model.filter(|model| !model.is_empty()).filter(legal).map(str::to_owned);
        return Launch { kind: Some(kind.to_owned()), model, ..launch };
    }
    launch
}

/// Stop an agent and remove it from lists
#[utoipa::path(delete, path = "/v1/agents/{id}", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn delete_agent(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let deleted = async {
        api.service().delete(agent_id(&id)?, Deletion::KeepHistory).await?;
        Ok(HttpResponse::Ok().json(()))
    };
    answer(deleted.await)
}

async fn shown(api: &Api, id: &str) -> Result<HttpResponse, Problem> {
    let agent = known(api, id).await?;
    Ok(HttpResponse::Ok().json(LettaAgentDto::from(&agent)))
}

/// Returns the agent if it is not deleted.
pub(super) async fn known(api: &Api, id: &str) -> Result<Agent, Problem> {
    let agent = api.service().get(agent_id(id)?).await?;
    if agent.deleted_at.is_some() {
        return Err(Problem::new(crate::error::Code::NotFound, "no such agent"));
    }
    Ok(agent)
}
