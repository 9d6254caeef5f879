//! Runs: the turns of an agent, waiting, running and ended, and their streams at any time.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_domain::{Sequence, Turn};

use super::answer::{answer, body, run as find};
use super::journal;
use super::run_list::list;
use super::stream::{Wanted, open};
use crate::api::Api;
use crate::dialect::RunId;
use crate::dto::IsoTime;
use crate::dto::letta::{RunDto, resume};
use crate::error::Problem;
use crate::query::Query;

/// A run as clients see it.
pub(super) async fn shown(api: &Api, run: RunId, turn: &Turn) -> Result<RunDto, Problem> {
    let end = journal::end(api, turn).await?;
    Ok(RunDto::new(run.to_string(), turn, end.map(|end| (end.stop_reason, IsoTime(end.at)))))
}

/// Read how a run stands
pub(crate) async fn run(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    answer(found(&api, &id).await)
}

async fn found(api: &Api, id: &str) -> Result<HttpResponse, Problem> {
    let (run, turn) = find(api, id).await?;
    Ok(HttpResponse::Ok().json(shown(api, run, &turn).await?))
}

/// List runs, over all agents
///
/// The runs of all agents, or of some.
pub(crate) async fn runs(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let listed = async {
        let query = Query::of(&request)?;
        Ok(HttpResponse::Ok().json(list(&api, &query).await?))
    };
    answer(listed.await)
}

/// Follow a run from where its stream was left
///
/// The rest of a run's stream: what comes after the cursor, then what comes live.
pub(crate) async fn run_stream(
    api: web::Data<Api>,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let streamed = async {
        let body = body(&api, &request, payload).await?;
        let resume = resume(body.as_deref(), api.config().json_depth)?;
        let (run, turn) = find(&api, &id).await?;
        let wanted = Wanted {
            tokens: resume.tokens.unwrap_or(run.tokens),
            pings: resume.pings.unwrap_or(true),
            after: Sequence(resume.after.unwrap_or(0)),
            ..Wanted::of(&request)?
        };
        open(&api, &request, &turn, wanted).await
    };
    answer(streamed.await)
}

/// Cancel a run
pub(crate) async fn cancel_run(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let cancelled = async {
        let (run, _) = find(&api, &id).await?;
        super::messages::cancelled(&api, run.agent, Some(vec![id.to_string()])).await?;
        found(&api, &id).await
    };
    answer(cancelled.await)
}

/// Read what a run has cost so far
///
/// What a run has cost so far.
pub(crate) async fn run_usage(api: web::Data<Api>, id: web::Path<String>) -> HttpResponse {
    let used = async {
        let (run, turn) = find(&api, &id).await?;
        Ok(HttpResponse::Ok().json(journal::usage(&api, run, &turn).await?))
    };
    answer(used.await)
}
