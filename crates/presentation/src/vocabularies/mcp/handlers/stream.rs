//! The stream of a wait: notifications about its progress, and then its result.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio::time::{Instant, Interval};

use super::wait::Wait;
use crate::api::{Api, StreamPlace};
use crate::blocks::BlockWriter;
use crate::frames::CHUNK_BYTES;
use crate::vocabularies::mcp::dto::{Caller, Done, ProgressDto, RequestId, Waited};
use crate::vocabularies::mcp::refusal::failed;
use crate::waits::every;

/// A comment that keeps the connection alive.
pub(super) const BEAT: Bytes = Bytes::from_static(b":\n\n");
/// The least time between two notifications. An agent prints faster than a client wants to be told.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// Streams a wait.
pub(super) fn open(
    api: &Api,
    caller: Caller,
    token: RequestId,
    wait: Wait,
    place: StreamPlace,
) -> HttpResponse {
    let stream = WaitStream {
        api: api.clone(),
        caller,
        token,
        wait: Some(wait),
        beat: every(api.config().heartbeat),
        told: None,
        // Bytes at once show that the stream is open.
        rest: BEAT,
        _place: place,
    };
    event_stream(blocks(stream))
}

/// An event stream as the response.
pub(super) fn event_stream(blocks: impl Stream<Item = Result<Bytes, Infallible>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(blocks)
}

struct WaitStream {
    api: Api,
    caller: Caller,
    token: RequestId,
    /// `None` once its result is written.
    wait: Option<Wait>,
    beat: Interval,
    /// When the client was last told about progress.
    told: Option<Instant>,
    /// Bytes that the client has not taken yet.
    rest: Bytes,
    _place: StreamPlace,
}

fn blocks(stream: WaitStream) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok(bytes), stream))
    })
}

impl WaitStream {
    async fn next(&mut self) -> Option<Bytes> {
        while self.rest.is_empty() {
            self.rest = self.more().await?;
        }
        Some(self.rest.split_to(self.rest.len().min(CHUNK_BYTES)))
    }

    /// The next bytes, which may be empty. `None` after the result.
    async fn more(&mut self) -> Option<Bytes> {
        let wait = self.wait.as_mut()?;
        let step = tokio::select! {
            biased;
            step = wait.step() => step,
            _ = self.beat.tick() => return Some(BEAT),
        };
        let mut out = BlockWriter::default();
        match step {
            Ok(true) => {
                let is_early = self.told.is_some_and(|told| told.elapsed() < PROGRESS_PAUSE);
                if !is_early {
                    let (up_to, entries) = wait.progress();
                    let message = format!("{entries} new entries, up to number {}", up_to.0);
                    out.unnamed(&ProgressDto::new(&self.token, up_to.0, message));
                    self.told = Some(Instant::now());
                }
            }
            Ok(false) => {
                let wait = self.wait.take()?;
                let result = wait.result(&self.api).await;
                let result = result.unwrap_or_else(|problem| Waited::Over(failed(&problem)));
                out.unnamed(&Done::waited(&self.caller, result));
            }
            Err(problem) => {
                self.wait = None;
                out.unnamed(&Done::new(&self.caller, failed(&problem)));
            }
        }
        Some(out.take())
    }
}
