//! Waits for events, but not for long.

use actix_web::{HttpRequest, HttpResponse};
use tokenrail_application::{Next, StreamEnd};
use tokenrail_domain::AgentId;
use tokio::time::timeout;

use super::closure::Followed;
use super::response::{Reached, live_page, nothing_new};
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::peer::peer;
use crate::vocabularies::durable_streams::StreamMessages;
use crate::vocabularies::durable_streams::offset::Offset;
use crate::vocabularies::durable_streams::read_query::ReadQuery;
use crate::vocabularies::durable_streams::stream_cursor::cursor_after;

/// Returns the next events after the offset. Waits for them as long as an event stream may be silent.
pub(super) async fn wait(
    api: &Api,
    id: AgentId,
    query: &ReadQuery,
    request: &HttpRequest,
    messages: StreamMessages,
) -> Result<HttpResponse, Problem> {
    let _place = api.open_stream(peer(request.peer_addr()))?;
    let mut followed = Followed::begin(api, id, query.from).await?;
    let next = timeout(api.config().heartbeat, followed.follower.next()).await;
    let cursor = cursor_after(query.cursor.as_deref(), api.service().now(), api.random()[0]);
    let reached = |end| Reached { next: Offset(followed.follower.cursor()), end };
    Ok(match next {
        Ok(Ok(Next::Page(page))) => {
            let reached = reached(followed.end(api).await?);
            live_page(&(messages.of_page)(id, &page), reached, cursor)
        }
        Ok(Ok(Next::End(StreamEnd::AgentDeleted))) => {
            nothing_new(reached(followed.after_deletion(api).await?), cursor)
        }
        Ok(Ok(Next::End(StreamEnd::AgentEnded))) | Err(_) => {
            nothing_new(reached(followed.end(api).await?), cursor)
        }
        Ok(Ok(Next::End(StreamEnd::ShuttingDown))) => {
            let detail = "the server is shutting down; try again later";
            return Err(Problem::new(Code::ShuttingDown, detail));
        }
        Ok(Err(error)) => return Err(error.into()),
    })
}
