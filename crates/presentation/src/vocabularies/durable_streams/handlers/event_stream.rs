//! Streams events: each page is an event `data`, and an event `control` that says where the page ends.

use std::collections::VecDeque;
use std::io;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokenrail_application::{Next, Page, StreamEnd};
use tokio::time::Interval;

use super::closure::Followed;
use super::response::ReachedEnd;
use crate::api::Api;
use crate::blocks::BlockWriter;
use crate::error::Problem;
use crate::frames::CHUNK_BYTES;
use crate::vocabularies::durable_streams::StreamMessages;
use crate::vocabularies::durable_streams::dto::ControlDto;
use crate::vocabularies::durable_streams::offset::Offset;
use crate::vocabularies::durable_streams::read_query::ReadQuery;
use crate::vocabularies::durable_streams::stream_cursor::{cursor_after, cursor_at};
use crate::vocabularies::turns::block_stream::{BEAT, event_stream};
use crate::waits::{every, in_turns};

const DATA: Bytes = Bytes::from_static(b"event: data\ndata: [");
const DATA_END: Bytes = Bytes::from_static(b"]\n\n");

/// Streams all events, as soon as they are there.
pub(super) async fn open(
    api: &Api,
    followed: Followed,
    query: &ReadQuery,
    messages: StreamMessages,
) -> Result<HttpResponse, Problem> {
    let cursor = cursor_after(query.cursor.as_deref(), api.service().now(), api.random()[0]);
    let mut stream = MessageStream {
        api: api.clone(),
        followed,
        messages,
        cursor,
        beat: every(api.config().heartbeat),
        rest: VecDeque::new(),
        is_over: false,
    };
    if stream.followed.follower.head() <= stream.followed.follower.cursor() {
        // A client that has everything is told so at once.
        let end = stream.followed.end(api).await?;
        stream.control(end);
    }
    Ok(event_stream().streaming(blocks(api.config().stream_turn_bytes, stream)))
}

struct MessageStream {
    api: Api,
    followed: Followed,
    messages: StreamMessages,
    /// It never goes back.
    cursor: u64,
    beat: Interval,
    /// What the client has not taken of the last page.
    rest: VecDeque<Bytes>,
    is_over: bool,
}

/// The blocks for the client. They are written as the client reads them, so nothing is queued.
fn blocks(turn_bytes: usize, stream: MessageStream) -> impl Stream<Item = io::Result<Bytes>> {
    let blocks = stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((bytes, stream))
    });
    in_turns(blocks.map(Ok), turn_bytes)
}

impl MessageStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(first) = self.rest.front_mut() {
                if first.is_empty() {
                    self.rest.pop_front();
                    continue;
                }
                return Some(first.split_to(first.len().min(CHUNK_BYTES)));
            }
            if self.is_over {
                return None;
            }
            self.more().await;
        }
    }

    /// Waits for the next blocks. If the stream breaks, the client comes back with its offset. If the cause persists,
    /// it is told then.
    async fn more(&mut self) {
        tokio::select! {
            biased;
            next = self.followed.follower.next() => match next {
                Ok(Next::Page(page)) => {
                    self.beat.reset();
                    self.page(&page).await;
                }
                Ok(Next::End(StreamEnd::AgentDeleted)) => {
                    // If it is purged, the client is told when it comes back.
                    if let Ok(end) = self.followed.after_deletion(&self.api).await {
                        self.control(end);
                    }
                    self.is_over = true;
                }
                Ok(Next::End(StreamEnd::AgentEnded)) => {
                    let end = self.end().await;
                    self.control(end);
                    self.is_over = true;
                }
                Ok(Next::End(StreamEnd::ShuttingDown)) => self.is_over = true,
                Err(error) => {
                    let (agent, error) = (self.followed.agent, &error as &dyn std::error::Error);
                    tracing::error!(%agent, error, "a stream of messages broke");
                    self.is_over = true;
                }
            },
            _ = self.beat.tick() => self.rest.push_back(BEAT),
        }
    }

    async fn page(&mut self, page: &Page) {
        let messages = (self.messages.of_page)(self.followed.agent, page);
        self.rest.extend([DATA, messages, DATA_END]);
        let end = self.end().await;
        self.control(end);
    }

    /// What follows. If that cannot be found out, the next page says it.
    async fn end(&self) -> ReachedEnd {
        self.followed.end(&self.api).await.unwrap_or(ReachedEnd::MoreFollows)
    }

    /// Appends a control event.
    fn control(&mut self, end: ReachedEnd) {
        let is_closed = end == ReachedEnd::Closed;
        self.cursor = self.cursor.max(cursor_at(self.api.service().now()));
        let control = ControlDto {
            stream_next_offset: Offset(self.followed.follower.cursor()),
            stream_cursor: (!is_closed).then(|| self.cursor.to_string()),
            // At the end of the stream, it would be implied. But only then does the client tell its subscribers.
            up_to_date: end != ReachedEnd::MoreFollows,
            stream_closed: is_closed,
        };
        let mut out = BlockWriter::default();
        out.named("control", None, &control);
        self.rest.push_back(out.take());
        self.is_over |= is_closed;
    }
}
