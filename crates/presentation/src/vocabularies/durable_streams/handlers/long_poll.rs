//! Waits for events, but not for long.

use actix_web::HttpResponse;
use tokenrail_application::{Next, StreamEnd};
use tokio::time::timeout;

use super::closure::Followed;
use super::response::{Reached, live_page, nothing_new};
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::vocabularies::durable_streams::StreamMessages;
use crate::vocabularies::durable_streams::offset::Offset;
use crate::vocabularies::durable_streams::read_query::ReadQuery;
use crate::vocabularies::durable_streams::stream_cursor::cursor_after;

/// Returns the next events after the offset. Waits for them as long as an event stream may be silent.
pub(super) async fn wait(
    api: &Api,
    mut followed: Followed,
    query: &ReadQuery,
    messages: StreamMessages,
) -> Result<HttpResponse, Problem> {
    let next = timeout(api.config().heartbeat, followed.follower.next()).await;
    let cursor = cursor_after(query.cursor.as_deref(), api.service().now(), api.random()[0]);
    let reached = |end| Reached { next: Offset(followed.follower.cursor()), end };
    Ok(match next {
        Ok(Ok(Next::Page(page))) => {
            let reached = reached(followed.end(api).await?);
            live_page(&(messages.of_page)(followed.agent, &page), reached, cursor)
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
