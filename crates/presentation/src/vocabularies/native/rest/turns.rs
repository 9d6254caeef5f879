//! An agent's turns, and the record of each.

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use tokenrail_application::{ListPage, Prompts, TurnRange};

use crate::api::Api;
use crate::by_id::ById;
use crate::error::{Code, Problem};
use crate::query::{self, Query};
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::turn::{TurnDto, TurnRecordSchema};
use crate::vocabularies::native::turn_record::TurnRecord;

/// List an agent's turns
#[utoipa::path(get, path = "/api/agents/{id}/turns", tag = "turns",
    params(("id" = String, Path), ("after" = Option<u32>, Query, description = "Only turns after this one"),
        ("limit" = Option<u32>, Query, minimum = 1, description = "Default: 100")),
    responses((status = 200, body = [TurnDto], description = "With `Link: rel=next` if there may be more",
        headers(("Link" = String)))))]
pub(crate) async fn turns(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let (id, query) = (query::agent_id(&id)?, Query::of(&request)?);
    let after = query.turn("after")?.unwrap_or_default();
    let limit = query.page_items(api.config().list_agents)?;
    let range = TurnRange { after, limit, ..TurnRange::default() };
    let ListPage { items: turns, more } = api.service().list_turns(id, range, Prompts::Shown).await?;
    let mut response = HttpResponse::Ok();
    if let Some(last) = turns.last().filter(|_| more) {
        response.insert_header((header::LINK, dto::turn::next_turns(id, &last.turn, limit)));
    }
    Ok(response.json(turns.iter().map(TurnDto::from).collect::<Vec<_>>()))
}

/// Get a turn as one document
///
/// Contains the prompt, the result, the messages with their parents, the raw lines of the agent program, and the
/// chunks of the AI SDK. The document of a running turn contains the events so far.
#[utoipa::path(get, path = "/api/agents/{id}/turns/{n}", tag = "turns",
    params(("id" = String, Path), ("n" = u32, Path, description = "The number of the turn")),
    responses((status = 200, body = TurnRecordSchema)))]
pub(crate) async fn turn(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (id, number) = path.into_inner();
    let agent = api.service().get(query::agent_id(&id)?).await?;
    let turn = match query::turn_number(&number) {
        Some(number) => api.service().turn(agent.id, number).await?,
        None => None,
    };
    let turn = turn.ok_or_else(no_such_turn)?;
    let record = TurnRecord::new(&api, &agent, &turn).await?;
    Ok(HttpResponse::Ok().content_type("application/json").streaming(record.bytes()))
}

/// Withdraw a queued turn
///
/// The agent never receives its prompt. The turn ends as `cancelled` when the turns before it have ended. Until then,
/// a repeated request has the same response.
#[utoipa::path(delete, path = "/api/agents/{id}/turns/{n}", tag = "turns",
    params(("id" = String, Path), ("n" = u32, Path, description = "The number of the turn")),
    responses((status = 204, description = "The turn is withdrawn")))]
pub(crate) async fn withdraw(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (id, number) = path.into_inner();
    let id = query::agent_id(&id)?;
    let number = query::turn_number(&number).ok_or_else(no_such_turn)?;
    api.service().withdraw_turn(id, number).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn no_such_turn() -> Problem {
    Problem::new(Code::NotFound, "no such turn")
}
