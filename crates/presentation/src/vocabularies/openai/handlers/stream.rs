//! The stream of a response or a chat completion, for the client that created it and for clients that resume it.

use std::io;

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokenrail_application::StreamEnd;
use tokenrail_domain::EventBody;
use tokio::time::Interval;

use super::shared::FollowedResponse;
use crate::api::{Api, StreamPlace};
use crate::fold::Fold as _;
use crate::frames::CHUNK_BYTES;
use crate::turn_events::{TurnEvents, TurnNext, TurnPage};
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::writer::Writer;
use crate::waits::every;

/// A comment that keeps the connection alive.
const BEAT: Bytes = Bytes::from_static(b":\n\n");

/// Streams a response.
pub(super) fn open(api: &Api, followed: FollowedResponse, mut out: impl Writer + 'static) -> HttpResponse {
    let FollowedResponse { mut fold, events, place } = followed;
    fold.open(&mut out);
    let first = out.take();
    // Bytes at once show that the stream is open.
    let rest = if first.is_empty() { BEAT } else { first };
    let beat = every(api.config().heartbeat);
    let stream = ResponseStream { events, fold, out, beat, rest, is_over: false, _place: place };
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(blocks(stream))
}

struct ResponseStream<W> {
    events: TurnEvents,
    fold: ResponsesFold,
    out: W,
    beat: Interval,
    /// Bytes that the client has not taken yet.
    rest: Bytes,
    is_over: bool,
    _place: StreamPlace,
}

/// Streams the blocks to the client. A block is written only when the client takes it, so nothing is queued. If the
/// stream ends before its turn does, the connection is aborted, so that the client does not take a part for the whole.
fn blocks<W: Writer>(stream: ResponseStream<W>) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        stream.is_over |= bytes.is_err();
        Some((bytes, stream))
    })
}

impl<W: Writer> ResponseStream<W> {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while self.rest.is_empty() {
            if self.is_over {
                return None;
            }
            match self.more().await {
                Ok(more) => self.rest = more,
                Err(why) => return Some(Err(io::Error::other(why))),
            }
        }
        Some(Ok(self.rest.split_to(self.rest.len().min(CHUNK_BYTES))))
    }

    /// Returns the next bytes. They are empty if the client has the events already.
    async fn more(&mut self) -> Result<Bytes, &'static str> {
        tokio::select! {
            biased;
            next = self.events.next() => match next {
                Ok(TurnNext::Events(page)) => {
                    let bytes = self.take_in(&page);
                    // Events without bytes are silence for the client.
                    if !bytes.is_empty() {
                        self.beat.reset();
                    }
                    Ok(bytes)
                }
                Ok(TurnNext::Over) => {
                    self.is_over = true;
                    Ok(Bytes::new())
                }
                Ok(TurnNext::Cut(StreamEnd::AgentDeleted)) => Err("the agent has been deleted"),
                Ok(TurnNext::Cut(_)) => Err("the server is shutting down"),
                Err(error) => {
                    // The client resumes after its last event. If the error persists, the client gets it then.
                    let response = self.fold.id();
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(response, error, "the stream of a response broke");
                    Err("the database failed")
                }
            },
            _ = self.beat.tick() => Ok(BEAT),
        }
    }

    fn take_in(&mut self, page: &TurnPage) -> Bytes {
        for event in page.events() {
            self.fold.event(event, &mut self.out);
            self.is_over |= matches!(event.body, EventBody::TurnResult(_));
        }
        self.out.take()
    }
}
