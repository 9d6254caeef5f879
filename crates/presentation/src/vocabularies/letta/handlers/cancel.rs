//! Cancels runs.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use tokenrail_application::{Prompts, TurnRange};
use tokenrail_domain::{AgentId, TurnNumber, TurnState};

use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::letta::run_id::RunId;

/// Cancels the open runs of an agent: all of them, or only the named ones. The response contains the outcome of each
/// run.
pub(super) async fn cancelled(
    api: &Api,
    agent: AgentId,
    named: Option<Vec<String>>,
) -> Result<HttpResponse, Problem> {
    let newest = api.service().get(agent).await?;
    let after = TurnNumber(newest.turn.0.saturating_sub(1));
    let range = TurnRange { after, limit: api.config().list_agents, ..TurnRange::default() };
    let turns = api.service().list_turns(agent, range, Prompts::LeftOut).await?.items;
    let turns = turns.iter().map(|listed| &listed.turn);
    let open: Vec<RunId> = turns
        .filter(|turn| !matches!(turn.state, TurnState::Ended(_)))
        .map(|turn| RunId { agent, turn: turn.number, tokens: false })
        .collect();
    let is_open = |id: &str| {
        id.parse::<RunId>()
            .is_ok_and(|run| open.iter().any(|open| (open.agent, open.turn) == (run.agent, run.turn)))
    };
    let named = if let Some(named) = named {
        for run in named.iter().filter(|id| is_open(id)).filter_map(|id| id.parse::<RunId>().ok()) {
            api.service().cancel_turn(run.agent, run.turn).await?;
        }
        named
    } else {
        api.service().cancel(agent).await?;
        open.iter().map(RunId::to_string).collect()
    };
    let outcome = |id: String| {
        let outcome = if is_open(&id) { "cancelled" } else { "failed" };
        (id, outcome)
    };
    let outcomes: BTreeMap<_, _> = named.into_iter().map(outcome).collect();
    Ok(HttpResponse::Ok().json(outcomes))
}
