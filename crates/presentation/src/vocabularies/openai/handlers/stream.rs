//! The stream of a response or a chat completion, for the client that created it and for clients that resume it.

use actix_web::HttpResponse;
use bytes::Bytes;
use tokenrail_application::{Refusal, Rereader, StreamEnd};

use super::response_turn::FollowedResponse;
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::fold::Fold as _;
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::writer::Writer;
use crate::vocabularies::prompts::large_body::closing;
use crate::vocabularies::turns::block_stream::{BEAT, BlockSource, event_stream, streamed};
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext, broken};

/// Streams a response from its beginning.
pub(super) fn open(
    api: &Api,
    mut followed: FollowedResponse,
    mut out: impl Writer + 'static,
) -> HttpResponse {
    followed.fold.open(&mut out);
    begin(api, followed, out)
}

/// Streams the rest of a response to a client that has a part of it. The stream begins when the server has found where
/// that part ends. A client that claims to have more than there is would otherwise take the silence for the rest.
/// `missing`: the problem if the agent is deleted meanwhile.
pub(super) async fn resume(
    api: &Api,
    mut followed: FollowedResponse,
    mut out: impl Writer + 'static,
    missing: fn() -> Problem,
) -> Result<HttpResponse, Problem> {
    let FollowedResponse { fold, events, .. } = &mut followed;
    fold.open(&mut out);
    // It must not wait for the turn: a queued one can begin much later.
    while out.unsent().is_taken()
        && let Some(known) = events.known().await?
    {
        match known {
            TurnNext::Events(page) => {
                for event in page.events() {
                    fold.event(event, &mut out);
                }
            }
            TurnNext::Over => break,
            TurnNext::Cut(StreamEnd::ShuttingDown) => return Err(closing()),
            TurnNext::Cut(_) => return Err(missing()),
        }
    }
    if out.unsent().is_ahead() {
        return Err(ahead(api, events).await);
    }
    Ok(begin(api, followed, out))
}

/// Streams what is written, and then what follows.
fn begin(api: &Api, followed: FollowedResponse, mut out: impl Writer + 'static) -> HttpResponse {
    let FollowedResponse { fold, events, place } = followed;
    let first = Some(out.unsent_mut().out.known()).filter(|first| !first.is_empty());
    let journal = api.service().reread(events.agent());
    let source = ResponseStream { events, journal, fold, out };
    let stream = streamed(source, first.unwrap_or(BEAT), api.config().heartbeat, place);
    event_stream().streaming(stream)
}

/// Why a client cannot have what it claims to have. After a failover of the database, it may come again.
async fn ahead(api: &Api, events: &TurnEvents) -> Problem {
    let newest = events.head();
    let refusal = api.service().events(events.agent(), newest.next(), Some(1)).await.err();
    let mut problem = Problem::from(refusal.unwrap_or(Refusal::CursorAhead { head: newest }));
    if problem.code == Code::CursorAhead {
        let detail = "greater than the latest sequence_number of the response; send the last one that you have, or omit \
                      starting_after";
        problem.errors = Problem::parameter("starting_after", detail).errors;
    }
    problem
}

struct ResponseStream<W> {
    events: TurnEvents,
    journal: Rereader,
    fold: ResponsesFold,
    out: W,
}

impl<W: Writer> BlockSource for ResponseStream<W> {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.out.unsent().is_taken() {
            let Some(page) = self.events.page().await? else { return Ok(None) };
            for event in page.events() {
                self.fold.event(event, &mut self.out);
            }
        }
        let more = self.out.unsent_mut().out.next(&mut self.journal).await;
        let more = more.map_err(|error| broken(self.events.agent(), &error))?;
        Ok(Some(more.unwrap_or_default()))
    }

    fn beat(&self) -> Bytes {
        // A comment within a block would be a part of it.
        if self.out.unsent().is_taken() { BEAT } else { Bytes::new() }
    }
}

#[cfg(test)]
mod tests;
