//! The streams of runs and threads.

use std::io;

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokenrail_application::{Follower, Next, StoreError, StreamEnd};
use tokenrail_domain::TurnNumber;
use tokio::time::Interval;

use crate::api::{Api, StreamPlace};
use crate::fold::Fold as _;
use crate::frames::CHUNK_BYTES;
use crate::turn_events::{TurnEvents, TurnNext};
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::fold::{AgUiFold, Scope};
use crate::vocabularies::ag_ui::rest::Rest;
use crate::waits::every;

/// A comment that keeps the connection alive. The first one shows that the stream is open.
const BEAT: Bytes = Bytes::from_static(b":\n\n");

/// A source of blocks.
pub(super) trait BlockSource {
    /// Waits for the next blocks. They are empty if the client has them already. `None` after the last one. May be
    /// dropped at any await.
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str>;
}

/// Streams blocks.
pub(super) fn open(api: &Api, source: impl BlockSource + 'static, place: StreamPlace) -> HttpResponse {
    let beat = every(api.config().heartbeat);
    let blocks = Blocks { source, beat, rest: BEAT, is_over: false, _place: place };
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(streamed(blocks))
}

struct Blocks<S> {
    source: S,
    beat: Interval,
    /// Bytes that the client has not taken yet.
    rest: Bytes,
    is_over: bool,
    _place: StreamPlace,
}

/// Streams the blocks to the client. A block is written only when the client takes it, so nothing is queued. If the
/// stream ends before its run does, the connection is aborted, so that the client does not take a part for the whole.
fn streamed<S: BlockSource>(blocks: Blocks<S>) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(blocks, |mut blocks| async move {
        let bytes = blocks.next().await?;
        blocks.is_over |= bytes.is_err();
        Some((bytes, blocks))
    })
}

impl<S: BlockSource> Blocks<S> {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while self.rest.is_empty() {
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                more = self.source.more() => match more {
                    Ok(Some(bytes)) => {
                        // Events without blocks are silence for the client.
                        if !bytes.is_empty() {
                            self.beat.reset();
                        }
                        self.rest = bytes;
                    }
                    Ok(None) => self.is_over = true,
                    Err(why) => return Some(Err(io::Error::other(why))),
                },
                _ = self.beat.tick() => self.rest = BEAT,
            }
        }
        Some(Ok(self.rest.split_to(self.rest.len().min(CHUNK_BYTES))))
    }
}

/// Why a stream ends before its run does.
fn cut(end: StreamEnd) -> &'static str {
    match end {
        StreamEnd::AgentEnded | StreamEnd::AgentDeleted => "the agent has been deleted",
        StreamEnd::ShuttingDown => "the server is shutting down",
    }
}

/// The client reconnects with its cursor. If the error persists, the client gets it then.
fn broken(error: &StoreError) -> &'static str {
    tracing::error!(error = error as &dyn std::error::Error, "the stream of a run broke");
    "the database failed"
}

/// One run.
pub(super) struct RunStream {
    events: TurnEvents,
    fold: AgUiFold,
    out: Rest,
}

impl RunStream {
    pub(super) fn new(events: TurnEvents, fold: AgUiFold, after: ThreadCursor) -> Self {
        Self { events, fold, out: Rest::new(after) }
    }
}

impl BlockSource for RunStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.fold.is_over() {
            return Ok(None);
        }
        match self.events.next().await {
            Ok(TurnNext::Events(page)) => {
                for event in page.events() {
                    self.fold.event(event, &mut self.out);
                }
                Ok(Some(self.out.take()))
            }
            Ok(TurnNext::Over) => Ok(None),
            Ok(TurnNext::Cut(end)) => Err(cut(end)),
            Err(error) => Err(broken(&error)),
        }
    }
}

/// All runs of a thread.
pub(super) struct ThreadStream {
    follower: Follower,
    thread: String,
    fold: Option<(TurnNumber, AgUiFold)>,
    out: Rest,
}

impl ThreadStream {
    pub(super) fn new(follower: Follower, thread: String, after: ThreadCursor) -> Self {
        Self { follower, thread, fold: None, out: Rest::new(after) }
    }

    /// Whether the agent waits for an answer, and there is nothing else to send.
    fn is_interrupted(&self) -> bool {
        let is_waiting = self.fold.as_ref().is_some_and(|(_, fold)| fold.is_waiting());
        is_waiting && self.follower.head() <= self.follower.cursor()
    }
}

impl BlockSource for ThreadStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.is_interrupted() {
            return Ok(None);
        }
        match self.follower.next().await {
            Ok(Next::Page(page)) => {
                let (agent, thread) = (self.follower.agent(), &self.thread);
                for event in page.events() {
                    let fold = match &mut self.fold {
                        Some((turn, fold)) if *turn == event.turn => fold,
                        other => {
                            let fold = AgUiFold::new(agent, event.turn, thread.clone(), Scope::Thread);
                            &mut other.insert((event.turn, fold)).1
                        }
                    };
                    fold.event(event, &mut self.out);
                }
                Ok(Some(self.out.take()))
            }
            Ok(Next::End(StreamEnd::AgentEnded)) => Ok(None),
            Ok(Next::End(end)) => Err(cut(end)),
            Err(error) => Err(broken(&error)),
        }
    }
}
