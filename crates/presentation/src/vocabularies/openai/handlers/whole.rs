//! Returns a whole response as one JSON document: as it is now, or once it has ended. Then the server sends the headers
//! at once, and white space while the response continues. Otherwise, a client assumes that the request is lost, and
//! sends it again.
//!
//! The document is sent piece by piece, as its client takes it.

use std::io;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use tokenrail_application::Rereader;
use tokenrail_domain::AgentId;
use tokio::time::Interval;

use super::response_turn::{FollowedResponse, ResponseTurn};
use crate::api::{Api, StreamPlace};
use crate::error::Problem;
use crate::fold::{Fold as _, Silence};
use crate::vocabularies::openai::dto::{CompletionDto, Gap};
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::pieces::Pieces;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext, broken};
use crate::waits::every;

/// White space in front of JSON has no meaning. It shows that the response is still coming.
const BEAT: Bytes = Bytes::from_static(b"\n");

/// Makes a document of a response.
pub(super) type Write = fn(&ResponsesFold, ResponseId) -> Pieces;

/// The document of a response.
pub(super) fn response(fold: &ResponsesFold, _: ResponseId) -> Pieces {
    Pieces::document(fold.response(), fold.items())
}

/// The document of a chat completion.
pub(super) fn completion(fold: &ResponsesFold, id: ResponseId) -> Pieces {
    let has_done = fold.items().next_in(Gap::Done, 0).is_some();
    Pieces::document(&CompletionDto::new(id.completion(), fold.response(), has_done), fold.items())
}

/// A document that is being sent.
struct Document {
    agent: AgentId,
    pieces: Pieces,
    journal: Rereader,
}

impl Document {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let next = self.pieces.next(&mut self.journal).await;
        next.map_err(|error| io::Error::other(broken(self.agent, &error)))
    }
}

/// Responds with a response as it is now. If the client takes no more, it holds a piece of it.
pub(super) async fn now(api: &Api, found: &ResponseTurn) -> Result<HttpResponse, Problem> {
    let agent = found.turn.agent;
    let fold = found.now(api).await?;
    let pieces = response(&fold, found.id());
    let mut document = Document { agent, pieces, journal: api.service().reread(agent) };
    let first = document.pieces.next(&mut document.journal).await?.unwrap_or_default();
    let mut head = HttpResponse::Ok();
    head.content_type("application/json");
    if document.pieces.is_empty() {
        return Ok(head.body(first));
    }
    let rest = stream::unfold(Some(document), |document| async move {
        let mut document = document?;
        let next = document.next().await.transpose()?;
        let rest = next.is_ok().then_some(document);
        Some((next, rest))
    });
    Ok(head.streaming(stream::iter([Ok(first)]).chain(rest)))
}

/// Responds with the document of the whole response.
pub(super) fn whole(api: &Api, id: ResponseId, followed: FollowedResponse, write: Write) -> HttpResponse {
    let FollowedResponse { fold, events, place } = followed;
    let journal = api.service().reread(events.agent());
    let beat = every(api.config().heartbeat);
    let whole = Whole { id, events, fold, write, beat, journal, written: None, _place: place };
    HttpResponse::Ok().content_type("application/json").streaming(bytes(whole))
}

/// The body of a response.
struct Whole {
    id: ResponseId,
    events: TurnEvents,
    fold: ResponsesFold,
    write: Write,
    beat: Interval,
    journal: Rereader,
    /// The document, as soon as the turn is over.
    written: Option<Pieces>,
    _place: StreamPlace,
}

/// Streams white space, and then the response. If it cannot be completed, the connection is aborted, so that the client
/// does not take a part for the whole. The turn continues, and the client can retrieve its response later.
fn bytes(whole: Whole) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(Some(whole), |whole| async move {
        let mut whole = whole?;
        let next = whole.next().await.transpose()?;
        let rest = next.is_ok().then_some(whole);
        Some((next, rest))
    })
}

impl Whole {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(written) = &mut self.written else {
            return tokio::select! {
                biased;
                over = gather(&mut self.events, &mut self.fold) => {
                    over?;
                    self.written = Some((self.write)(&self.fold, self.id));
                    // Never empty.
                    Ok(self.written.as_mut().map(Pieces::known))
                }
                _ = self.beat.tick() => Ok(Some(BEAT)),
            };
        };
        let next = written.next(&mut self.journal).await;
        next.map_err(|error| io::Error::other(broken(self.id.agent, &error)))
    }
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
                let response = &fold.response().id;
                tracing::error!(response, error = &error as &dyn std::error::Error, "cannot read a response");
                return Err(io::Error::other("the database failed"));
            }
        }
    }
}
