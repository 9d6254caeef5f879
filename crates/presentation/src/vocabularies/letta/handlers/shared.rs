//! Shared by all of Letta's routes: ids with their prefixes, pages of lists, and the format of errors.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use tokenrail_domain::{AgentId, Turn};

use crate::api::Api;
use crate::error::{Code, FieldProblem, Problem};
use crate::query::{self, Query};
use crate::vocabularies::letta::dto::{LettaProblem, Resume, resume};
use crate::vocabularies::letta::run_id::RunId;

/// Prevents Letta's clients from retrying a request that will be refused again. Without this header, they decide by
/// the status alone.
const NO_RETRY: (&str, &str) = ("x-should-retry", "false");

/// Turns the outcome of a request into a response.
pub(super) fn answer(outcome: Result<HttpResponse, Problem>) -> HttpResponse {
    outcome.unwrap_or_else(refused)
}

/// An error in Letta's own format: `{"detail": …}`.
pub(crate) fn refused(problem: Problem) -> HttpResponse {
    let mut response = HttpResponse::build(problem.status_code());
    if let Some(seconds) = problem.retry_after_s {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    if let Some(allow) = problem.allow {
        response.insert_header((header::ALLOW, allow));
    }
    if !problem.code.retryable() {
        response.insert_header(NO_RETRY);
    }
    let wrong: Vec<_> = problem.errors.iter().map(FieldProblem::sentence).collect();
    let detail = if wrong.is_empty() { problem.detail } else { wrong.join("; ") };
    response.json(LettaProblem { detail: &detail })
}

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

/// Reads the body. `None` if there is none.
pub(super) async fn body(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Option<web::Bytes>, Problem> {
    query::optional_body(request, payload, api.config()).await
}

/// Reads the body of a request to resume a stream.
pub(super) async fn resume_body(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Resume, Problem> {
    let body = body(api, request, payload).await?;
    resume(body.as_deref(), api.config().json_depth)
}

/// The requested page of a list. `after` and `before` refer to the order of the list.
#[derive(Debug, Clone)]
pub(super) struct Range {
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
    pub(super) limit: usize,
    /// Oldest first.
    pub(super) ascending: bool,
}

impl Range {
    pub(super) fn of(query: &Query, api: &Api) -> Result<Self, Problem> {
        let max = api.config().list_agents;
        let ascending = match query.get("order") {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(Problem::parameter("order", "must be asc or desc")),
        };
        Ok(Self {
            after: query.get("after").map(str::to_owned),
            before: query.get("before").map(str::to_owned),
            limit: query.page_items(max)?,
            ascending,
        })
    }

    /// Cuts the page out of a list. Items with the same id stay together.
    pub(super) fn cut<T>(&self, mut items: Vec<T>, id: impl Fn(&T) -> String) -> Vec<T> {
        if let Some(after) = &self.after
            && let Some(last) = items.iter().rposition(|item| id(item) == *after)
        {
            items.drain(..=last);
        }
        if let Some(before) = &self.before {
            if let Some(first) = items.iter().position(|item| id(item) == *before) {
                items.truncate(first);
            }
            let mut begin = items.len().saturating_sub(self.limit);
            while 0 < begin && items.len() > begin && id(&items[begin - 1]) == id(&items[begin]) {
                begin -= 1;
            }
            items.drain(..begin);
            return items;
        }
        let mut end = self.limit.min(items.len());
        while 0 < end && end < items.len() && id(&items[end - 1]) == id(&items[end]) {
            end += 1;
        }
        items.truncate(end);
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(after: &str, before: &str, limit: usize) -> String {
        let cursor = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let range = Range { after: cursor(after), before: cursor(before), limit, ascending: true };
        range.cut("abccd".chars().collect(), char::to_string).into_iter().collect()
    }

    #[test]
    fn a_page_begins_behind_its_cursor_and_keeps_together_what_has_one_id() {
        assert_eq!(cut("", "", 2), "ab");
        assert_eq!(cut("", "", 3), "abcc");
        assert_eq!(cut("b", "", 1), "cc");
        assert_eq!(cut("c", "", 9), "d");
        assert_eq!(cut("d", "", 9), "");
        assert_eq!(cut("", "d", 1), "cc");
        assert_eq!(cut("", "c", 1), "b");
        assert_eq!(cut("a", "d", 9), "bcc");
        assert_eq!(cut("x", "y", 9), "abccd", "a cursor that is not in the list is none");
    }
}
