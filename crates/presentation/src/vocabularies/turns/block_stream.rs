//! Event streams that answer a request, and end when their source ends.

use std::io;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio::time::Interval;

use crate::api::StreamPlace;
use crate::frames::CHUNK_BYTES;
use crate::waits::every;

/// A comment that keeps the connection alive. As the first bytes, it shows that the stream is open.
pub(crate) const BEAT: Bytes = Bytes::from_static(b":\n\n");

/// A source of blocks.
pub(crate) trait BlockSource {
    /// Waits for the next blocks. They are empty if the client has them already. `None` after the last one. An error
    /// says why the stream ends before that. May be dropped at any await.
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str>;

    /// What is sent to a client that has received nothing for a while.
    fn beat(&self) -> Bytes {
        BEAT
    }
}

/// The head of every event stream.
pub(crate) fn event_stream() -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"));
    response
}

/// Streams `first` and then the blocks of a source. A block is written only when the client takes it, so nothing is
/// queued. If the stream ends before its source does, the connection is aborted, so that the client does not take a
/// part for the whole.
///
/// `first` must not be empty: bytes at once show that the stream is open.
pub(crate) fn streamed<S: BlockSource>(
    source: S,
    first: Bytes,
    silence: Duration,
    place: StreamPlace,
) -> impl Stream<Item = io::Result<Bytes>> {
    let blocks = Blocks { source, beat: every(silence), rest: first, is_over: false, _place: place };
    stream::unfold(blocks, |mut blocks| async move {
        let bytes = blocks.next().await?;
        blocks.is_over |= bytes.is_err();
        Some((bytes, blocks))
    })
}

struct Blocks<S> {
    source: S,
    beat: Interval,
    /// Bytes that the client has not taken yet.
    rest: Bytes,
    is_over: bool,
    _place: StreamPlace,
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
                _ = self.beat.tick() => self.rest = self.source.beat(),
            }
        }
        Some(Ok(self.rest.split_to(self.rest.len().min(CHUNK_BYTES))))
    }
}
