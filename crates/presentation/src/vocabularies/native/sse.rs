//! The native event stream: `GET /api/agents/{id}/events` with `Accept: text/event-stream`.

use std::io;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokenrail_application::{AfterLastTurn, Follower, Next, StreamEnd};
use tokenrail_domain::{AgentId, Sequence};
use tokio::time::{Instant, Interval};

use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::frames::CHUNK_BYTES;
use crate::guard::Stay;
use crate::peer::peer;
use crate::query::{self, Query};
use crate::vocabularies::native::{Detail, EventWriting};
use crate::vocabularies::turns::block_stream::{BEAT, event_stream};
use crate::waits::{every, in_turns, passed};

/// The first block, which is sent at once. It shows that the stream is open, and sets the reconnection delay in
/// milliseconds. It also contains the cursor: a client that is disconnected before the first event reconnects with that
/// cursor, and not as a new client.
fn hello(cursor: Sequence) -> Bytes {
    format!("retry: 1000\nid: {cursor}\n:\n\n").into()
}

/// Follows an agent.
pub(crate) async fn open(
    api: &Api,
    id: AgentId,
    query: &Query,
    request: &HttpRequest,
) -> Result<HttpResponse, Problem> {
    let cursor = match last_event_id(request.headers())? {
        Some(cursor) => cursor,
        None => query.since()?.unwrap_or(Sequence::START),
    };
    let (keep, unnamed, detail) = (query.flag("keep")?, query.flag("unnamed")?, Detail::wished(query)?);
    let after_last_turn = if keep { AfterLastTurn::Wait } else { AfterLastTurn::End };
    let (agent, follower) = api.service().follow(id, Some(cursor), after_last_turn).await?;
    let ended = !agent.status.is_active() && agent.queued == 0 && !follower.expects_more();
    if ended && !keep && cursor == follower.head() {
        // This status stops an EventSource from reconnecting.
        return Ok(HttpResponse::NoContent().finish());
    }
    let place = api.open_stream(peer(request.peer_addr()))?;
    let writing = EventWriting::new(agent.id, detail, !unnamed);
    let until = request.extensions().get::<Stay>().map(|stay| stay.0);
    // The hello is the first sign of life.
    let beat = every(api.config().heartbeat);
    Ok(event_stream().streaming(blocks(
        api.config().stream_turn_bytes,
        EventStream {
            follower,
            writing,
            beat,
            until,
            hello: Some(hello(cursor)),
            rest: Bytes::new(),
            _place: place,
        },
    )))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Sequence>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let malformed =
        |_| Problem::new(Code::CursorMalformed, "Last-Event-ID must be a whole number, 0 or greater");
    let text = value.to_str().map_err(malformed)?;
    Ok(Some(Sequence(query::cursor(text)?)))
}

struct EventStream {
    follower: Follower,
    writing: EventWriting,
    beat: Interval,
    /// When the stream must end, if the client has resumed it with a ticket: when the ticket expires.
    until: Option<Instant>,
    hello: Option<Bytes>,
    /// The part of the last page that is not sent yet.
    rest: Bytes,
    _place: StreamPlace,
}

/// The blocks for the client. They are generated as the client reads them, so nothing is queued.
fn blocks(turn_bytes: usize, stream: EventStream) -> impl Stream<Item = io::Result<Bytes>> {
    let blocks = stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        let bytes = stream.next().await.transpose()?;
        // After an error, the body breaks off. So a client does not take this end for that of the agent.
        let stream = bytes.is_ok().then_some(stream);
        Some((bytes, stream))
    });
    in_turns(blocks, turn_bytes)
}

impl EventStream {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(hello) = self.hello.take() {
            return Ok(Some(hello));
        }
        if self.rest.is_empty() {
            let Some(more) = self.more().await? else { return Ok(None) };
            self.rest = more;
        }
        Ok(Some(self.rest.split_to(self.rest.len().min(CHUNK_BYTES))))
    }

    async fn more(&mut self) -> io::Result<Option<Bytes>> {
        tokio::select! {
            biased;
            () = passed(self.until) => Ok(None),
            next = self.follower.next() => match next {
                Ok(Next::Page(page)) => {
                    self.beat.reset();
                    Ok(Some(self.writing.of(&page)))
                }
                Ok(Next::End(StreamEnd::AgentEnded | StreamEnd::AgentDeleted | StreamEnd::ShuttingDown)) => Ok(None),
                Err(error) => {
                    // The client reconnects with its cursor, and receives the problem then if it persists.
                    let agent = self.follower.agent();
                    tracing::error!(%agent, error = &error as &dyn std::error::Error, "an event stream broke");
                    Err(io::Error::other(error))
                }
            },
            _ = self.beat.tick() => Ok(Some(BEAT)),
        }
    }
}
