//! The stream of a response or a chat completion, for the client that created it and for clients that resume it.

use actix_web::HttpResponse;
use bytes::Bytes;

use super::shared::FollowedResponse;
use crate::api::Api;
use crate::block_stream::{BEAT, BlockSource, event_stream, streamed};
use crate::fold::Fold as _;
use crate::turn_events::TurnEvents;
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::writer::Writer;

/// Streams a response.
pub(super) fn open(api: &Api, followed: FollowedResponse, mut out: impl Writer + 'static) -> HttpResponse {
    let FollowedResponse { mut fold, events, place } = followed;
    fold.open(&mut out);
    let first = out.take();
    let first = if first.is_empty() { BEAT } else { first };
    let source = ResponseStream { events, fold, out };
    event_stream().streaming(streamed(source, first, api.config().heartbeat, place))
}

struct ResponseStream<W> {
    events: TurnEvents,
    fold: ResponsesFold,
    out: W,
}

impl<W: Writer> BlockSource for ResponseStream<W> {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        let Some(page) = self.events.page().await? else { return Ok(None) };
        for event in page.events() {
            self.fold.event(event, &mut self.out);
        }
        Ok(Some(self.out.take()))
    }
}
