//! The tools that do one thing and return.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use futures_util::future::join_all;
use tokenrail_application::{
    AgentFilter, ArchivedFilter, CommandKey, Launch, LaunchOutcome, ListPage, PermissionAnswer, Refusal,
};
use tokenrail_domain::{AgentId, Sequence};
use tokio::time::{Instant, timeout_at};

use super::parent::parent;
use crate::api::Api;
use crate::error::Problem;
use crate::json::IdText;
use crate::vocabularies::mcp::dto::{
    self, AgentList, AgentState, AgentTypeList, AnswerState, CallToolResult, Cancelled, Launched, NewAgent,
    Params, Sent,
};
use crate::vocabularies::mcp::refusal::why;

/// The least time that answers get. A wait may be shorter, but a person wants to know of a refusal.
const ANSWERS_MIN: Duration = Duration::from_secs(1);

pub(super) async fn types(api: &Api) -> CallToolResult {
    CallToolResult::of(&AgentTypeList::from(api.service().types().await))
}

pub(super) async fn list(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let wish = dto::list(params)?;
    let filter = AgentFilter {
        statuses: wish.status.into_iter().collect(),
        before: wish.before,
        archived: ArchivedFilter::Without,
        limit: wish.limit,
        ..AgentFilter::default()
    };
    let ListPage { items, more } = api.service().list(filter).await?;
    let last = items.last().filter(|_| more).map(|listed| IdText::from(listed.agent.id));
    let agents = items.into_iter().map(|listed| AgentState::from(listed.agent)).collect();
    Ok(CallToolResult::of(&AgentList { agents, next_cursor: last }))
}

/// Launches an agent. If an agent launches it, `headers` say which.
pub(super) async fn launch(
    api: &Api,
    headers: &HeaderMap,
    params: &Params,
) -> Result<CallToolResult, Problem> {
    let parent = parent(headers)?;
    let mut new = dto::launch(params)?;
    let idempotency = new.key.take().map(|key| launch_key(parent, &key, &new));
    let NewAgent { agent_type: kind, prompt, cwd, model, name, key: _ } = new;
    let launch = Launch { kind, prompt, cwd, model, name, parent, idempotency, ..Launch::default() };
    let LaunchOutcome { agent, again } = api.service().launch(launch).await?;
    Ok(CallToolResult::of(&Launched::new(&agent, again)))
}

/// The key of a launch. It belongs to the arguments, in whatever order the client wrote them. Models choose keys such
/// as "task-1", so each agent that launches others has keys of its own, and clients that are no agents share theirs.
fn launch_key(parent: Option<AgentId>, key: &str, new: &NewAgent) -> CommandKey {
    let parent = parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
    // The spaces keep it apart from the keys of other protocols, which contain none.
    CommandKey { key: format!("mcp {parent} {key}"), body: serde_json::to_string(new).unwrap_or_default() }
}

pub(super) async fn send(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let dto::MessageWish { agent, content, key } = dto::message(params)?;
    let key = key.map(|key| CommandKey { key: format!("mcp {key}"), body: content.clone() });
    let accepted = api.service().send(agent, content.into(), key).await?;
    // The head is read before the turn: if the turn has not begun when it is read, all of it comes after the head.
    let head = api.service().get(agent).await?.head;
    let turn = api.service().turn(agent, accepted.turn).await?;
    let last = turn.and_then(|turn| turn.first_sequence).map_or(head, Sequence::before);
    Ok(CallToolResult::of(&Sent::new(agent, accepted.turn, accepted.queued, last)))
}

pub(super) async fn answer(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let dto::AnswerWish { agent, answer } = dto::answer(params)?;
    let request_id = answer.request_id.clone();
    let outcome = api.service().answer(agent, answer).await?;
    Ok(CallToolResult::of(&AnswerState::new(agent, request_id, outcome)))
}

/// What became of a person's answers.
pub(super) struct Passed {
    /// The requests that are answered. The agent may not have heard of it yet.
    pub(super) answered: Vec<String>,
    /// Why the agent does not accept the answers to the other requests.
    pub(super) refused: BTreeMap<String, String>,
}

/// Gives an agent the answers of a person, all at once. Somebody else may have answered meanwhile. An answer that is on
/// its way for too long is not waited for, but not recalled either.
pub(super) async fn pass_on(
    api: &Api,
    agent: AgentId,
    answers: Vec<PermissionAnswer>,
    until: Instant,
) -> Result<Passed, Problem> {
    let until = until.max(Instant::now() + ANSWERS_MIN);
    let given = answers.into_iter().map(|answer| {
        let (service, request) = (api.service().clone(), answer.request_id.clone());
        let giving = actix_web::rt::spawn(async move { service.answer(agent, answer).await });
        async move { (request, timeout_at(until, giving).await) }
    });
    let mut passed = Passed { answered: Vec::new(), refused: BTreeMap::new() };
    let mut failure = None;
    for (request, outcome) in join_all(given).await {
        let refusal = match outcome {
            Err(_) | Ok(Ok(Ok(_) | Err(Refusal::RequestSettled(_)))) => {
                passed.answered.push(request);
                continue;
            }
            Ok(Ok(Err(refusal))) => refusal,
            // The server stops.
            Ok(Err(_)) => Refusal::ShuttingDown,
        };
        if is_of_the_answer(&refusal) {
            passed.refused.insert(request, why(&refusal.into()));
        } else {
            failure.get_or_insert(refusal);
        }
    }
    failure.map_or(Ok(passed), |refusal| Err(refusal.into()))
}

/// Whether another answer, or the same one later, may succeed.
fn is_of_the_answer(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::OptionUnknown { .. }
            | Refusal::ReplyNotAccepted(_)
            | Refusal::ReplyTooLong { .. }
            | Refusal::AnswerNotDelivered
    )
}

pub(super) async fn cancel(api: &Api, params: &Params) -> Result<CallToolResult, Problem> {
    let dto::CancelWish { agent, turn } = dto::cancel(params)?;
    match turn {
        Some(turn) => api.service().cancel_turn(agent, turn).await?,
        None => api.service().cancel(agent).await?,
    }
    let status = api.service().get(agent).await?.status;
    Ok(CallToolResult::of(&Cancelled::new(agent, status)))
}
