//! Agents as a whole: launch, list, get, edit, cancel, delete.

use std::fmt::Write as _;

use actix_web::http::header::{self, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{AgentFilter, ArchivedFilter, Deletion, LaunchOutcome, ListPage};
use tokenrail_domain::{Agent, AgentStatus, ListedAgent};

use crate::api::Api;
use crate::by_id::ById;
use crate::error::Problem;
use crate::json::{AgentRefDto, JsonList};
use crate::query::{self, Query};
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::agent::{AgentDto, AgentStatusDto};
use crate::vocabularies::native::dto::requests::{EditBody, LaunchBody};
use crate::vocabularies::native::rest::prompt;

/// The statuses of agents that are starting or running.
const ACTIVE: &str = "initializing,running";

/// Launch an agent
#[utoipa::path(post, path = "/api/agents", tag = "agents", request_body = LaunchBody,
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$",
        description = "A repeated request with the same key and body returns the same agent")),
    responses((status = 201, description = "The agent is saved and starts", body = AgentDto,
        headers(("Location" = String), ("Idempotent-Replayed" = String, description = "`true` if the key was already used")))))]
pub(crate) async fn launch(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (mut launch, key) = prompt::receive(&api, &request, payload, dto::requests::launch).await?;
    launch.idempotency = key;
    // The next step is in `use_cases/launch.rs` of the application crate.
    let LaunchOutcome { agent, again } = api.service().launch(launch).await?;
    let mut response = HttpResponse::Created();
    response.insert_header((header::LOCATION, format!("/api/agents/{}", agent.id)));
    if again {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    Ok(response.json(agent_json(&api, &agent)))
}

/// List agents, newest first
#[utoipa::path(get, path = "/api/agents", tag = "agents",
    params(
        ("status" = Option<String>, Query, pattern = r"^((initializing|running|completed|failed|cancelled|interrupted)(,(initializing|running|completed|failed|cancelled|interrupted))*)?$",
            description = "One or more statuses, separated by commas"),
        ("type" = Option<String>, Query),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Default: 100"),
        ("before" = Option<String>, Query, pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
            description = "Only agents launched before this one"),
        ("pinned" = Option<bool>, Query, description = "List pinned agents only"),
        ("archived" = Option<bool>, Query, description = "List archived agents instead"),
        ("deleted" = Option<bool>, Query, description = "List deleted agents instead")),
    responses((status = 200, body = [AgentDto], description = "With `Link: rel=next` if there may be more",
        headers(("Link" = String)))))]
pub(crate) async fn list(api: web::Data<Api>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let (deleted, archived) = (query.flag("deleted")?, query.flag("archived")?);
    let filter = AgentFilter {
        statuses: statuses(query.get("status"))?,
        kind: query.get("type").map(str::to_owned),
        before: match query.get("before").map(str::parse) {
            None => None,
            Some(Ok(id)) => Some(id),
            Some(Err(_)) => return Err(Problem::parameter("before", "must be an agent id")),
        },
        deleted,
        pinned: query.flag("pinned")?,
        archived: match (archived, deleted) {
            (true, _) => ArchivedFilter::Only,
            (false, false) => ArchivedFilter::Without,
            // A list of deleted agents contains all of them.
            (false, true) => ArchivedFilter::With,
        },
        limit: query.page_items(api.config().list_agents)?,
        ..AgentFilter::default()
    };
    listing(&api, filter, query.get("status")).await
}

/// List agents that are starting or running
#[utoipa::path(get, path = "/api/agents/active", tag = "agents",
    responses((status = 200, body = [AgentDto], description = "With `Link: rel=next` if there may be more",
        headers(("Link" = String)))))]
pub(crate) async fn active(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let filter = AgentFilter {
        statuses: vec![AgentStatus::Initializing, AgentStatus::Running],
        limit: api.config().list_agents,
        ..AgentFilter::default()
    };
    listing(&api, filter, Some(ACTIVE)).await
}

/// Get an agent
#[utoipa::path(get, path = "/api/agents/{id}", tag = "agents", params(("id" = String, Path)),
    responses((status = 200, body = AgentDto)))]
pub(crate) async fn get(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent = api.service().get(query::agent_id(&id)?).await?;
    Ok(HttpResponse::Ok().json(agent_json(&api, &agent)))
}

/// Change an agent's name or its place in lists
///
/// The body is a JSON merge patch: fields that are absent stay as they are. The agent's events stay as they are, so
/// this is possible at any time, even after the agent has ended.
#[utoipa::path(patch, path = "/api/agents/{id}", tag = "agents", request_body = EditBody, params(("id" = String, Path)),
    responses((status = 200, body = AgentDto)))]
pub(crate) async fn edit(
    ById { api, id, request }: ById,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    let body = query::body(&request, payload, api.config()).await?;
    let edit = dto::requests::edit(&body, api.config().json_depth)?;
    let agent = api.service().edit(id, edit).await?;
    Ok(HttpResponse::Ok().json(agent_json(&api, &agent)))
}

/// Get an agent's status
#[utoipa::path(get, path = "/api/agents/{id}/status", tag = "agents", params(("id" = String, Path)),
    responses((status = 200, body = AgentStatusDto)))]
pub(crate) async fn status(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent = api.service().get(query::agent_id(&id)?).await?;
    Ok(HttpResponse::Ok().json(AgentStatusDto::new(agent.id, agent.status)))
}

/// Cancel an agent's running and queued turns
///
/// With `turn`, only that turn is cancelled, and the other turns are not affected. The agent's events show how the
/// turns end. A repeated request, or a request for an agent or a turn that has ended, has the same response.
#[utoipa::path(post, path = "/api/agents/{id}/cancel", tag = "agents",
    params(("id" = String, Path),
        ("turn" = Option<u32>, Query, description = "Cancel only this turn. A turn that does not exist changes nothing")),
    responses((status = 202, body = AgentRefDto)))]
pub(crate) async fn cancel(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    match Query::of(&request)?.turn("turn")? {
        // The next step of both is in `use_cases/cancel.rs` of the application crate.
        Some(turn) => api.service().cancel_turn(id, turn).await?,
        None => api.service().cancel(id).await?,
    }
    Ok(HttpResponse::Accepted().json(AgentRefDto { agent_id: id.into() }))
}

/// Stop an agent and remove it from lists
#[utoipa::path(delete, path = "/api/agents/{id}", tag = "agents",
    params(("id" = String, Path), ("purge" = Option<bool>, Query, description = "Delete the history too")),
    responses((status = 204, description = "The agent is stopped and deleted")))]
pub(crate) async fn delete(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let purge = Query::of(&request)?.flag("purge")?;
    let deletion = if purge { Deletion::Purge } else { Deletion::KeepHistory };
    api.service().delete(query::agent_id(&id)?, deletion).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// An agent as it is now.
fn agent_json<'a>(api: &Api, agent: &'a Agent) -> AgentDto<'a> {
    AgentDto::new(agent, api.service().needs(agent.id), api.service().home_of(agent))
}

/// One page of agents. `statuses` are the filter's statuses as a query value, for the link to the next page.
async fn listing(api: &Api, filter: AgentFilter, statuses: Option<&str>) -> Result<HttpResponse, Problem> {
    let ListPage { items: agents, more } = api.service().list(filter.clone()).await?;
    let mut response = HttpResponse::Ok();
    if let Some(last) = agents.last().filter(|_| more) {
        response.insert_header((header::LINK, next_page(&filter, statuses, last)));
    }
    let service = api.service();
    let mut list = JsonList::with_room(agents.iter().map(ListedAgent::bytes).sum());
    for listed in &agents {
        let agent = &listed.agent;
        list.item(&AgentDto::listed(listed, service.needs(agent.id), service.home_of(agent)));
    }
    Ok(response.content_type(ContentType::json()).body(list.into_list()))
}

fn statuses(text: Option<&str>) -> Result<Vec<AgentStatus>, Problem> {
    let words = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let mut statuses = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let Some(status) = AgentStatus::from_name(word) else {
            let known = AgentStatus::ALL.map(AgentStatus::as_str).join(", ");
            return Err(Problem::parameter(
                "status",
                format!("must be one or more of these, separated by commas: {known}"),
            ));
        };
        statuses.push(status);
    }
    Ok(statuses)
}

/// The link to the agents after the last one of this page.
fn next_page(filter: &AgentFilter, statuses: Option<&str>, last: &ListedAgent) -> String {
    let mut link = format!("</api/agents?before={}&limit={}", last.agent.id, filter.limit);
    let flag = |is_set: bool| is_set.then_some("true");
    let parameters = [
        ("status", statuses),
        ("type", filter.kind.as_deref()),
        ("pinned", flag(filter.pinned)),
        ("archived", flag(filter.archived == ArchivedFilter::Only)),
        ("deleted", flag(filter.deleted)),
    ];
    for (name, value) in parameters {
        if let Some(value) = value {
            let _ = write!(link, "&{name}={}", percent_encoded(value));
        }
    }
    link.push_str(">; rel=\"next\"");
    link
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
