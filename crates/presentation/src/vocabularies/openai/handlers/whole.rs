//! Returns a whole response as one JSON document, once it has ended. The server sends the headers at once, and white
//! space while the response continues. Otherwise, a client assumes that the request is lost, and sends it again.

use std::io;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::time::Interval;

use super::shared::FollowedResponse;
use crate::api::{Api, StreamPlace};
use crate::fold::{Fold as _, Silence};
use crate::turn_events::{TurnEvents, TurnNext};
use crate::vocabularies::openai::dto::ResponseDto;
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::waits::every;

/// White space in front of JSON has no meaning. It shows that the response is still coming.
const BEAT: Bytes = Bytes::from_static(b"\n");

/// Responds with what `write` makes of the whole response.
pub(super) fn whole<T: Serialize + 'static>(
    api: &Api,
    followed: FollowedResponse,
    write: impl FnOnce(ResponseDto) -> T + 'static,
) -> HttpResponse {
    let FollowedResponse { fold, events, place } = followed;
    let beat = every(api.config().heartbeat);
    let whole = Whole { events, fold, write, beat, _place: place };
    HttpResponse::Ok().content_type("application/json").streaming(bytes(whole))
}

/// The body of a response.
struct Whole<W> {
    events: TurnEvents,
    fold: ResponsesFold,
    write: W,
    beat: Interval,
    _place: StreamPlace,
}

/// Streams white space, and then the response. If it cannot be completed, the connection is aborted, so that the client
/// does not take a part for the whole. The turn continues, and the client can retrieve its response later.
fn bytes<T: Serialize>(
    whole: Whole<impl FnOnce(ResponseDto) -> T>,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some(whole), |whole| async move {
        let mut whole = whole?;
        tokio::select! {
            biased;
            over = gather(&mut whole.events, &mut whole.fold) => {
                let json = over.and_then(|()| Ok(serde_json::to_vec(&(whole.write)(whole.fold.into_response()))?.into()));
                Some((json, None))
            }
            _ = whole.beat.tick() => Some((Ok(BEAT), Some(whole))),
        }
    })
}

/// Receives events until the turn is over. May be dropped at any await.
async fn gather(events: &mut TurnEvents, fold: &mut ResponsesFold) -> io::Result<()> {
    loop {
        match events.next().await {
            Ok(TurnNext::Events(page)) => {
                for event in page.events() {
                    fold.event(event, &mut Silence);
                }
            }
            Ok(TurnNext::Over) => return Ok(()),
            Ok(TurnNext::Cut(_)) => {
                return Err(io::Error::other("the agent was deleted, or the server is shutting down"));
            }
            Err(error) => {
                let response = fold.id();
                tracing::error!(response, error = &error as &dyn std::error::Error, "cannot read a response");
                return Err(io::Error::other("the database failed"));
            }
        }
    }
}
