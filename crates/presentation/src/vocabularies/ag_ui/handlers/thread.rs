//! Finds the agent of a thread, and reads where a client stands.

use actix_web::HttpRequest;
use tokenrail_domain::{Agent, AgentId};

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::query::Query;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;

pub(super) fn no_thread() -> Problem {
    Problem::new(Code::NotFound, "no such thread")
}

/// The agent of a thread: the one that the thread has launched, or the one with this id.
pub(super) async fn agent_of(api: &Api, thread: &str) -> Result<Option<Agent>, Problem> {
    if let Some(agent) = api.service().by_chat(thread.to_owned()).await? {
        return Ok(Some(agent));
    }
    let Ok(id) = thread.parse::<AgentId>() else { return Ok(None) };
    match api.service().get(id).await.map_err(Problem::from) {
        Ok(agent) => Ok(Some(agent).filter(|agent| agent.deleted_at.is_none())),
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// The cursor of the last event that the client has.
pub(super) fn after(request: &HttpRequest) -> Result<ThreadCursor, Problem> {
    let query = Query::of(request)?;
    let Some(after) = query.get("after") else { return Ok(ThreadCursor::START) };
    after.parse().map_err(|_| {
        Problem::new(
            Code::CursorMalformed,
            "after must be the cursor in the metadata of an event, such as 12.3",
        )
    })
}
