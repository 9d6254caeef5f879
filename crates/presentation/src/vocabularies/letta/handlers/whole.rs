//! Returns all of a run as one JSON response, once the run has ended. The server sends the headers at once, and
//! white space while the run continues. Otherwise, a client assumes that the request is lost, and sends its message
//! again.

use std::io;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokenrail_application::StreamEnd;
use tokenrail_domain::EventBody;
use tokio::time::Interval;

use super::stream::{CancelOnLeave, FollowedTurn, Wanted};
use crate::api::StreamPlace;
use crate::fold::Fold as _;
use crate::vocabularies::letta::dto::{LettaResponse, StopReasonDto};
use crate::vocabularies::letta::fold::{LettaFold, LettaFrame};
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext, TurnPage};
use crate::waits::every;

/// White space in front of JSON has no meaning. It shows that the response is still coming.
const BEAT: Bytes = Bytes::from_static(b"\n");

/// Responds with all of a turn.
pub(super) fn whole(followed: FollowedTurn<'_>, wanted: Wanted) -> HttpResponse {
    let FollowedTurn { api, turn, events, place } = followed;
    let fold = LettaFold::new(turn.agent, turn.number, false);
    let response = LettaResponse {
        messages: Vec::new(),
        stop_reason: StopReasonDto::new("error"),
        usage: fold.usage_so_far(),
    };
    let whole = Whole {
        run: Gathered { events, fold, frames: Vec::new(), response },
        beat: every(api.config().heartbeat),
        leaving: wanted.cancel_on_disconnect.then(|| CancelOnLeave::new(api, turn)),
        _place: place,
    };
    HttpResponse::Ok().content_type("application/json").streaming(bytes(whole))
}

/// The body of a response.
struct Whole {
    run: Gathered,
    beat: Interval,
    leaving: Option<CancelOnLeave>,
    _place: StreamPlace,
}

/// What was received of a run so far.
struct Gathered {
    events: TurnEvents,
    fold: LettaFold,
    frames: Vec<LettaFrame>,
    response: LettaResponse,
}

/// Streams white space, and then the response. If the response cannot be completed, the connection is aborted, so that
/// the client does not take a part for the whole. The run continues, and a client that asks again gets it.
fn bytes(whole: Whole) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some(whole), |whole| async move {
        let mut whole = whole?;
        tokio::select! {
            biased;
            over = whole.run.over() => {
                if let Some(leaving) = whole.leaving.take() {
                    leaving.stay();
                }
                let json = over.and_then(|()| Ok(serde_json::to_vec(&whole.run.response)?.into()));
                Some((json, None))
            }
            _ = whole.beat.tick() => Some((Ok(BEAT), Some(whole))),
        }
    })
}

impl Gathered {
    /// Receives events until the run is over. May be dropped at any await.
    async fn over(&mut self) -> io::Result<()> {
        loop {
            match self.events.next().await {
                Ok(TurnNext::Events(page)) => self.gather(&page),
                // A run ends with its agent, so it has no more events.
                Ok(TurnNext::Over | TurnNext::Cut(StreamEnd::AgentDeleted)) => return Ok(()),
                Ok(TurnNext::Cut(_)) => return Err(io::Error::other("the server is shutting down")),
                Err(error) => {
                    let run = self.fold.run();
                    tracing::error!(run, error = &error as &dyn std::error::Error, "cannot read a run");
                    return Err(io::Error::other("the database failed"));
                }
            }
        }
    }

    fn gather(&mut self, page: &TurnPage) {
        for event in page.events() {
            self.fold.event(event, &mut self.frames);
            if let EventBody::TurnResult(result) = &event.body {
                self.response.usage = self.fold.usage_of(result);
            }
        }
        for frame in self.frames.drain(..) {
            match frame {
                LettaFrame::Message(message) => self.response.messages.push(*message),
                LettaFrame::Stop(stop) => self.response.stop_reason = stop,
                LettaFrame::Usage(_) | LettaFrame::Error { .. } => {}
            }
        }
    }
}
