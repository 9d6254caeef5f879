//! Which agent a client is a part of.

use actix_web::http::header::HeaderMap;
use tokenrail_domain::AgentId;

use crate::error::Problem;

/// The header with the value of the variable `TOKENRAIL_RUN`, which each process of an agent has: the agent and a run.
const RUN: &str = "tokenrail-run";

/// The agent that launches, if the client says that it is one. It may be an agent of another server.
pub(super) fn parent(headers: &HeaderMap) -> Result<Option<AgentId>, Problem> {
    // A client that is no agent may expand a variable that is not set.
    let Some(run) = headers.get(RUN).filter(|run| !run.is_empty()) else { return Ok(None) };
    let agent = run.to_str().ok().and_then(|run| run.rsplit_once('-')).and_then(|(agent, number)| {
        number.parse::<u64>().ok()?;
        agent.parse().ok()
    });
    let wrong =
        || Problem::parameter("Tokenrail-Run", "must be the value of the agent's variable TOKENRAIL_RUN");
    agent.map(Some).ok_or_else(wrong)
}
