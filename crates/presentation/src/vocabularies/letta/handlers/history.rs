//! The messages so far: of an agent, of its conversation, or of one run.

use actix_web::HttpResponse;
use tokenrail_application::{Prompts, TurnRange};
use tokenrail_domain::{AgentId, Sequence, Turn, TurnNumber, TurnState, event_of, message_of};

use super::ids::{agent_id, conversation_id, run as find_run};
use super::message_page::{LettaPage, Wanted};
use super::range::Range;
use super::refusal::answer;
use crate::api::Api;
use crate::by_id::ById;
use crate::error::Problem;
use crate::fold::Fold as _;
use crate::query::Query;
use crate::vocabularies::letta::dto::{LettaMessage, PageQuery};
use crate::vocabularies::letta::fold::{LettaFold, LettaFrame};

/// The number of turns that are listed at once.
const TURNS: usize = 100;

/// List the messages of an agent
#[utoipa::path(get, path = "/v1/agents/{id}/messages", tag = "letta",
    params(("id" = String, Path), PageQuery),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn history(ById { api, id, request }: ById) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        said(&api, agent_id(&id)?, &query).await
    };
    answer(read.await)
}

/// List the messages of a conversation
#[utoipa::path(get, path = "/v1/conversations/{id}/messages", tag = "letta",
    params(("id" = String, Path), PageQuery,
        ("agent_id" = Option<String>, Query)),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn conversation_history(ById { api, id, request }: ById) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        said(&api, conversation_id(&id, query.get("agent_id"))?, &query).await
    };
    answer(read.await)
}

/// List the messages of a run
#[utoipa::path(get, path = "/v1/runs/{id}/messages", tag = "letta",
    params(("id" = String, Path), PageQuery),
    responses((status = 200, body = [LettaMessage])))]
pub(crate) async fn run_history(ById { api, id, request }: ById) -> HttpResponse {
    let read = async {
        let query = Query::of(&request)?;
        let range = Range::of(&query, &api)?;
        let (_, turn) = find_run(&api, &id).await?;
        let mut page = LettaPage::new(Wanted::new(range, api.config().list_bytes));
        add_turn(&api, &turn, &mut page).await?;
        Ok(HttpResponse::Ok().json(page.into_messages()))
    };
    answer(read.await)
}

/// Returns a page of an agent's messages. Turns are read one by one until the page is full. The first is the turn in
/// which the page begins or ends.
async fn said(api: &Api, agent: AgentId, query: &Query) -> Result<HttpResponse, Problem> {
    let wanted = Wanted::new(Range::of(query, api)?, api.config().list_bytes);
    let from = match wanted.from() {
        Some(cursor) => turn_of(api, agent, cursor).await?,
        None => None,
    };
    let mut range = TurnRange { newest_first: !wanted.forwards, limit: TURNS, ..TurnRange::default() };
    if let Some(from) = from {
        range.after = TurnNumber(if wanted.forwards { from.0.saturating_sub(1) } else { 0 });
        range.before = from.0.checked_add(1).filter(|_| !wanted.forwards).map(TurnNumber);
    }
    let mut page = LettaPage::new(wanted);
    'turns: loop {
        let turns = api.service().list_turns(agent, range, Prompts::LeftOut).await?;
        for listed in &turns.items {
            if !add_turn(api, &listed.turn, &mut page).await? {
                break 'turns;
            }
        }
        let Some(last) = turns.items.last().filter(|_| turns.more) else { break };
        if range.newest_first {
            range.before = Some(last.turn.number);
        } else {
            range.after = last.turn.number;
        }
    }
    Ok(HttpResponse::Ok().json(page.into_messages()))
}

/// Finds the turn of a cursor by the id in the cursor. `None` if the id leads to no turn.
async fn turn_of(api: &Api, agent: AgentId, cursor: &str) -> Result<Option<TurnNumber>, Problem> {
    let Some(id) = cursor.strip_prefix("message-").and_then(|id| id.parse().ok()) else { return Ok(None) };
    if let Some((turn, _)) = message_of(agent, id) {
        let turn = api.service().turn(agent, turn).await?;
        return Ok(turn.map(|turn| turn.number));
    }
    let Some(sequence) = event_of(agent, id) else { return Ok(None) };
    Ok(api.service().turn_at(agent, sequence).await?.map(|turn| turn.number))
}

/// Adds the messages of a turn to the page, as far as the page needs them. Returns whether the page needs more turns.
async fn add_turn(api: &Api, turn: &Turn, page: &mut LettaPage) -> Result<bool, Problem> {
    let Some(first) = turn.first_sequence else { return Ok(page.end_of_turn()) };
    let mut fold = LettaFold::new(turn.agent, turn.number, false);
    let mut frames = Vec::new();
    let mut since = Sequence(first.0.saturating_sub(1));
    let end = turn.last_sequence.filter(|_| matches!(turn.state, TurnState::Ended(_)));
    'events: loop {
        let (events, _) = api.service().events(turn.agent, since, None).await?;
        let Some(last) = events.last() else { break };
        since = last.sequence;
        for event in events.iter().filter(|event| event.turn == turn.number) {
            if fold.prompt(event).is_some_and(|prompt| !page.add(prompt)) {
                break 'events;
            }
            fold.event(event, &mut frames);
            for frame in frames.drain(..) {
                if let LettaFrame::Message(message) = frame
                    && !page.add(*message)
                {
                    break 'events;
                }
            }
        }
        if last.turn != turn.number || end.is_some_and(|end| end <= since) {
            break;
        }
    }
    Ok(page.end_of_turn())
}
