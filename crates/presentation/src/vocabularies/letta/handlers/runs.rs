//! Runs: the queued, running and ended turns of an agent, and their streams.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_domain::Sequence;

use super::body::resume_body;
use super::cancel::cancelled;
use super::ids::run as find;
use super::journal;
use super::refusal::answer;
use super::run::shown;
use super::run_list::list;
use super::stream::{FollowedTurn, Wanted, open};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::query::Query;
use crate::vocabularies::letta::dto::{LettaResumeBody, RunDto, UsageStatistics};

/// Get a run
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = RunDto)))]
pub(crate) async fn run(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    answer(found(&api, &id).await)
}

async fn found(api: &Api, id: &str) -> Result<HttpResponse, Problem> {
    let (run, turn) = find(api, id).await?;
    Ok(HttpResponse::Ok().json(shown(api, run, &turn).await?))
}

/// List runs of all agents or of selected agents
#[utoipa::path(get, path = "/v1/runs", tag = "letta",
    params(("limit" = Option<u64>, Query, minimum = 1), ("after" = Option<String>, Query),
        ("before" = Option<String>, Query), ("order" = Option<String>, Query, pattern = "^(asc|desc)$"),
        ("order_by" = Option<String>, Query, pattern = "^created_at$"), ("ascending" = Option<bool>, Query),
        ("agent_id" = Option<String>, Query), ("agent_ids" = Option<Vec<String>>, Query),
        ("conversation_id" = Option<String>, Query), ("active" = Option<bool>, Query),
        ("background" = Option<bool>, Query), ("statuses" = Option<Vec<String>>, Query),
        ("stop_reason" = Option<String>, Query)),
    responses((status = 200, body = [RunDto])))]
pub(crate) async fn runs(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let listed = async {
        let query = Query::of(&request)?;
        Ok(HttpResponse::Ok().json(list(&api, &query).await?))
    };
    answer(listed.await)
}

/// Resume the stream of a run
///
/// Streams the events after the cursor and then each new one.
#[utoipa::path(post, path = "/v1/runs/{id}/stream", tag = "letta", request_body = Option<LettaResumeBody>,
    params(("id" = String, Path), ("format" = Option<String>, Query, pattern = "^(letta|kelpie|both)$")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(crate) async fn run_stream(ById { api, id, request }: ById, payload: web::Payload) -> HttpResponse {
    let streamed = async {
        let resume = resume_body(&api, &request, payload).await?;
        let (run, turn) = find(&api, &id).await?;
        let wanted = Wanted {
            tokens: resume.tokens.unwrap_or(run.tokens),
            pings: resume.pings.unwrap_or(true),
            after: Sequence(resume.after.unwrap_or(0)),
            ..Wanted::of(&request)?
        };
        open(FollowedTurn::new(&api, &request, &turn).await?, wanted)
    };
    answer(streamed.await)
}

/// Cancel a run
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = RunDto)))]
pub(crate) async fn cancel_run(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let cancelled = async {
        let (run, _) = find(&api, &id).await?;
        cancelled(&api, run.agent, Some(vec![id.to_string()])).await?;
        found(&api, &id).await
    };
    answer(cancelled.await)
}

/// Get the token usage of a run
#[utoipa::path(get, path = "/v1/runs/{id}/usage", tag = "letta",
    params(("id" = String, Path)),
    responses((status = 200, body = UsageStatistics)))]
pub(crate) async fn run_usage(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let used = async {
        let (run, turn) = find(&api, &id).await?;
        Ok(HttpResponse::Ok().json(journal::usage(&api, run, &turn).await?))
    };
    answer(used.await)
}
