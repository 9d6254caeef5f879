//! Reads what is there, page by page.

use actix_web::{HttpRequest, HttpResponse};
use tokenrail_domain::AgentId;

use super::closure::is_closed;
use super::response::{Reached, ReachedEnd, history_page};
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::durable_streams::StreamMessages;
use crate::vocabularies::durable_streams::offset::{Offset, ReadFrom};

/// One page of the events after an offset.
pub(super) async fn page(
    api: &Api,
    id: AgentId,
    from: ReadFrom,
    request: &HttpRequest,
    messages: StreamMessages,
) -> Result<HttpResponse, Problem> {
    // The agent is read first: if its journal was complete then, so are the events that are read now.
    let agent = api.service().get(id).await?;
    let end = |is_end| match is_end {
        true if is_closed(&agent) => ReachedEnd::Closed,
        true => ReachedEnd::UpToDate,
        false => ReachedEnd::MoreFollows,
    };
    let Some(since) = from.since() else {
        let mut response = HttpResponse::Ok();
        Reached { next: Offset(agent.head), end: end(true) }.tell(&mut response);
        return Ok(response.content_type("application/json").body("[]"));
    };
    let (events, head) = api.service().events(id, since, None).await?;
    let next = events.last().map_or(since, |event| event.sequence);
    let reached = Reached { next: Offset(next), end: end(head <= next) };
    Ok(history_page(request.headers(), &(messages.of_events)(id, &events), reached))
}
