//! A read, and the metadata of a stream.

use actix_web::HttpResponse;
use actix_web::http::Method;
use tokenrail_domain::AgentId;

use super::closure::{Followed, is_closed};
use super::{catch_up, event_stream, long_poll};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::query::{self, Query};
use crate::vocabularies::durable_streams::StreamMessages;
use crate::vocabularies::durable_streams::dto::{CLOSED, NEXT_OFFSET};
use crate::vocabularies::durable_streams::offset::Offset;
use crate::vocabularies::durable_streams::read_query::{Live, ReadQuery};

/// Read an agent's journal as a stream of the Durable Streams protocol
///
/// Without `live`, returns a page of the events after `offset`. With `live=long-poll`, waits for events if there are
/// none. With `live=sse`, streams all events after `offset` and then each new one.
#[utoipa::path(get, path = "/v1/stream/agents/{id}/events", tag = "durable-streams",
    params(("id" = String, Path),
        ("offset" = Option<String>, Query, pattern = "^(-1|now|[0-9]{20})$",
            description = "`-1`, `now`, or an offset from an earlier response. Required for a live read"),
        ("live" = Option<String>, Query, pattern = "^(long-poll|sse)$"),
        ("cursor" = Option<String>, Query, description = "The cursor from the last live response"),
        ("If-None-Match" = Option<String>, Header)),
    responses(
        (status = 200, content((Vec<serde_json::Value> = "application/json"), (EventBlock = "text/event-stream")),
            headers(("Stream-Next-Offset" = String), ("Stream-Up-To-Date" = String), ("Stream-Closed" = String),
                ("Stream-Cursor" = String), ("ETag" = String))),
        (status = 204, description = "Long poll: no event arrived in time, or the stream is closed"),
        (status = 304, description = "Not modified: the client already has this page")))]
pub(crate) async fn read(
    ById { api, id, request }: ById,
    messages: StreamMessages,
) -> Result<HttpResponse, Problem> {
    let id = query::agent_id(&id)?;
    let query = ReadQuery::of(&Query::of(&request)?)?;
    if request.method() == Method::HEAD {
        // Metadata is the same in all modes. Nobody follows the agent for it.
        return metadata(&api, id).await;
    }
    let Some(live) = query.live else {
        return catch_up::page(&api, id, query.from, &request, messages).await;
    };
    let followed = Followed::begin(&api, &request, id, query.from).await?;
    match live {
        Live::LongPoll => long_poll::wait(&api, followed, &query, messages).await,
        Live::Sse => event_stream::open(&api, followed, &query, messages).await,
    }
}

async fn metadata(api: &Api, id: AgentId) -> Result<HttpResponse, Problem> {
    let agent = api.service().get(id).await?;
    let mut response = HttpResponse::Ok();
    response.insert_header((NEXT_OFFSET, Offset(agent.head).to_string()));
    if is_closed(&agent) {
        response.insert_header((CLOSED, "true"));
    }
    Ok(response.content_type("application/json").finish())
}
