//! Ids with their prefixes, and what they name.

use tokenrail_domain::{AgentId, Turn};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::query;
use crate::vocabularies::letta::run_id::RunId;

/// Reads an agent's id, with the prefix of an agent or of its conversation, or without a prefix.
pub(super) fn agent_id(text: &str) -> Result<AgentId, Problem> {
    let id = text.strip_prefix("agent-").or_else(|| text.strip_prefix("conv-")).unwrap_or(text);
    query::agent_id(id)
}

/// The agent of a conversation. The path names it, unless the path is `default`: then `agent` names it.
pub(super) fn conversation_id(path: &str, agent: Option<&str>) -> Result<AgentId, Problem> {
    match (path, agent) {
        ("default", Some(agent)) => agent_id(agent),
        ("default", None) => Err(Problem::field("agent_id", "must be present")),
        (path, _) => agent_id(path),
    }
}

/// Finds a run and its turn.
pub(super) async fn run(api: &Api, id: &str) -> Result<(RunId, Turn), Problem> {
    let missing = || Problem::new(Code::NotFound, "no such run");
    let run: RunId = id.parse().map_err(|_| missing())?;
    let turn = api.service().turn(run.agent, run.turn).await?;
    Ok((run, turn.ok_or_else(missing)?))
}
