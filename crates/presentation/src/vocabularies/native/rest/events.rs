//! The events of an agent, and messages to it.

use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::{HttpResponse, web};
use tokenrail_domain::{AgentId, Event, Sequence};

use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::json::JsonList;
use crate::query::{self, Form, Query};
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::agent::AcceptedDto;
use crate::vocabularies::native::dto::deltas::PageItemDto;
use crate::vocabularies::native::dto::requests::SendBody;
use crate::vocabularies::native::rest::prompt;
use crate::vocabularies::native::sse;
use crate::vocabularies::native::{Detail, Dialect, EventFold};

/// Read an agent's messages
///
/// Returns a page of the events after `since`: all events except the deltas of complete messages. With `last`, the
/// page ends at the latest event.
#[utoipa::path(get, path = "/api/agents/{id}/messages", tag = "messages",
    params(("id" = String, Path), ("since" = Option<u64>, Query), ("limit" = Option<u64>, Query, minimum = 1),
        ("last" = Option<u64>, Query, minimum = 1, description = "Return only the latest N events"),
        ("raw" = Option<bool>, Query),
        ("packed" = Option<bool>, Query, description = "Combine consecutive deltas of the same message part into one item; `raw` overrides it")),
    responses((status = 200, body = [PageItemDto],
        headers(("Tokenrail-Since" = u64, description = "With `last`: the page begins after this sequence number"),
            ("Tokenrail-Up-To" = u64, description = "The page is complete up to this sequence number"),
            ("Tokenrail-Head" = u64, description = "The latest sequence number")))))]
pub(crate) async fn messages(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let (id, query) = (query::agent_id(&id)?, Query::of(&request)?);
    Dialect::over_http(&query)?;
    let since = query.since()?.unwrap_or(Sequence::START);
    let (limit, detail) = (query.limit(usize::MAX)?, Detail::wished(&query)?);
    let Some(last) = query.last()? else {
        let page = api.service().messages(id, since, limit).await?;
        return Ok(answer(id, &page.events, detail, page.up_to, page.head));
    };
    let (since, page) = api.service().newest_messages(id, last, since, limit).await?;
    let mut newest = answer(id, &page.events, detail, page.up_to, page.head);
    newest.headers_mut().insert(HeaderName::from_static("tokenrail-since"), since.0.into());
    Ok(newest)
}

/// Read or follow all events of an agent
///
/// With JSON, returns a page of the events after `since`. With `Accept: text/event-stream`, streams all events
/// after `since` and then each new one.
#[utoipa::path(get, path = "/api/agents/{id}/events", tag = "messages",
    params(("id" = String, Path), ("since" = Option<u64>, Query), ("limit" = Option<u64>, Query, minimum = 1),
        ("raw" = Option<bool>, Query),
        ("packed" = Option<bool>, Query, description = "Combine consecutive deltas of the same message part into one item or block; `raw` overrides it"),
        ("keep" = Option<bool>, Query, description = "Event stream: stay open for later turns"),
        ("unnamed" = Option<bool>, Query,
            description = "Event stream: omit `event` lines, so that `EventSource.onmessage` receives every event"),
        ("ticket" = Option<String>, Query, description = "Event stream: a ticket, instead of the Authorization header"),
        ("Last-Event-ID" = Option<String>, Header, description = "Event stream: overrides `since`")),
    responses(
        (status = 200, content((Vec<PageItemDto> = "application/json"), (EventBlock = "text/event-stream")),
            headers(("Tokenrail-Up-To" = u64), ("Tokenrail-Head" = u64))),
        (status = 204, description = "Event stream: the agent has ended, and there are no events after the cursor")))]
pub(crate) async fn events(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let (id, query) = (query::agent_id(&id)?, Query::of(&request)?);
    Dialect::over_http(&query)?;
    if query::form(request.headers())? == Form::EventStream {
        if request.method() == Method::HEAD {
            // Following has a side effect: an agent may be cancelled when its last follower disconnects.
            return Err(Problem::method_not_allowed("GET"));
        }
        return sse::open(&api, id, &query, &request).await;
    }
    let since = query.since()?.unwrap_or(Sequence::START);
    let (limit, detail) = (query.limit(usize::MAX)?, Detail::wished(&query)?);
    // These have no effect on JSON, but an invalid value is an error in both formats.
    query.flag("keep")?;
    query.flag("unnamed")?;
    let (events, head) = api.service().events(id, since, limit).await?;
    let up_to = events.last().map_or(since, |event| event.sequence);
    Ok(answer(id, &events, detail, up_to, head))
}

/// Send a message to an agent
///
/// The message becomes the next turn of the agent.
#[utoipa::path(post, path = "/api/agents/{id}/messages", tag = "messages", request_body = SendBody,
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$")),
    responses((status = 202, body = AcceptedDto)))]
pub(crate) async fn send(
    ById { api, id, request }: ById,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    let (prompt, key) = prompt::receive(&api, &request, payload, dto::requests::send).await?;
    let accepted = api.service().send(id, prompt, key).await?;
    Ok(HttpResponse::Accepted().json(AcceptedDto::from(accepted)))
}

fn answer(id: AgentId, events: &[Event], detail: Detail, up_to: Sequence, head: Sequence) -> HttpResponse {
    let mut items = JsonList::default();
    detail.feed(&mut EventFold::new(id, detail), events, &mut items);
    HttpResponse::Ok()
        .insert_header(("Tokenrail-Up-To", up_to.0))
        .insert_header(("Tokenrail-Head", head.0))
        .content_type("application/json")
        .body(items.into_list())
}
