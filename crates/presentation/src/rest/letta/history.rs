//! What was said so far, as messages: of an agent, of its conversation, of one run.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_domain::{AgentId, Sequence, Turn, TurnNumber, TurnState};

use super::answer::{Range, agent_id, answer, conversation_id, run as find_run};
use crate::api::Api;
use crate::dialect::{LettaFold, LettaFrame};
use crate::dto::letta::LettaMessage;
use crate::error::Problem;
use crate::query::Query;

/// Read what was said with an agent
#[utoipa::path(get, path = "/v1/agents/{id}/messages", tag = "letta",
    params(("id" = String, Path), ("limit" = Option<u64>, Query, minimum = 1), ("after" = Option<String>, Query),
        ("before" = Option<String>, Query), ("order" = Option<String>, Query, pattern = "^(asc|desc)$")),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn history(
    api: web::Data<Api>,
    id: web::Path<String>,
    request: HttpRequest,
) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        said(&api, agent_id(&id)?, &query).await
    };
    answer(read.await)
}

/// Read what was said in a conversation
#[utoipa::path(get, path = "/v1/conversations/{id}/messages", tag = "letta",
    params(("id" = String, Path), ("limit" = Option<u64>, Query, minimum = 1), ("after" = Option<String>, Query),
        ("before" = Option<String>, Query), ("order" = Option<String>, Query, pattern = "^(asc|desc)$"),
        ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn conversation_history(
    api: web::Data<Api>,
    id: web::Path<String>,
    request: HttpRequest,
) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        said(&api, conversation_id(&id, query.get("agent_id"))?, &query).await
    };
    answer(read.await)
}

/// Read what was said in a run
#[utoipa::path(get, path = "/v1/runs/{id}/messages", tag = "letta",
    params(("id" = String, Path), ("limit" = Option<u64>, Query, minimum = 1), ("after" = Option<String>, Query),
        ("before" = Option<String>, Query), ("order" = Option<String>, Query, pattern = "^(asc|desc)$")),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn run_history(
    api: web::Data<Api>,
    id: web::Path<String>,
    request: HttpRequest,
) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        let range = Range::of(&query, &api)?;
        let (_, turn) = find_run(&api, &id).await?;
        let mut messages = of_turn(&api, &turn).await?;
        if !range.ascending {
            messages.reverse();
        }
        Ok(HttpResponse::Ok().json(range.cut(messages, |message| message.id.clone())))
    };
    answer(read.await)
}

/// A page of an agent's messages. Turns are read one after the other, from the end at which the page begins, until
/// there are enough messages behind the cursor.
async fn said(api: &Api, agent: AgentId, query: &Query) -> Result<HttpResponse, Problem> {
    let range = Range::of(query, api)?;
    let newest = api.service().get(agent).await?.turn;
    let mut messages: Vec<LettaMessage> = Vec::new();
    for step in 0..newest.0 {
        let number = TurnNumber(if range.ascending { step + 1 } else { newest.0 - step });
        let Some(turn) = api.service().turn(agent, number).await? else { continue };
        let mut more = of_turn(api, &turn).await?;
        if !range.ascending {
            more.reverse();
        }
        messages.append(&mut more);
        let is = |id: Option<&String>| id.is_some_and(|id| messages.iter().any(|it| it.id == *id));
        let behind = match &range.after {
            // Where the cursor is not found in a turn, all that was read comes before it.
            Some(after) => {
                messages.iter().rposition(|it| it.id == *after).map_or(0, |at| messages.len() - at - 1)
            }
            None => messages.len(),
        };
        if is(range.before.as_ref()) || range.before.is_none() && range.limit <= behind {
            break;
        }
        if range.after.is_some() && !is(range.after.as_ref()) {
            messages.clear();
        }
    }
    Ok(HttpResponse::Ok().json(range.cut(messages, |message| message.id.clone())))
}

/// The messages of one turn, oldest first.
async fn of_turn(api: &Api, turn: &Turn) -> Result<Vec<LettaMessage>, Problem> {
    let Some(first) = turn.first_sequence else { return Ok(Vec::new()) };
    let mut fold = LettaFold::new(turn.agent, turn.number, false);
    let (mut messages, mut frames) = (Vec::new(), Vec::new());
    let mut since = Sequence(first.0.saturating_sub(1));
    let end = turn.last_sequence.filter(|_| matches!(turn.state, TurnState::Ended(_)));
    loop {
        let (events, _) = api.service().events(turn.agent, since, None).await?;
        let Some(last) = events.last() else { return Ok(messages) };
        since = last.sequence;
        for event in events.iter().filter(|event| event.turn == turn.number) {
            messages.extend(fold.prompt(event));
            fold.event(event, &mut frames);
            let said = frames.drain(..).filter_map(|frame| match frame {
                LettaFrame::Message(message) => Some(*message),
                _ => None,
            });
            messages.extend(said);
        }
        if last.turn != turn.number || end.is_some_and(|end| end <= since) {
            return Ok(messages);
        }
    }
}
