//! The stream of a run, for the client that started it and for clients that resume it.

use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use tokenrail_application::AgentService;
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, Turn, TurnNumber};

use crate::api::{Api, StreamPlace};
use crate::blocks::BlockWriter;
use crate::error::Problem;
use crate::fold::Fold as _;
use crate::json::IsoTime;
use crate::peer::peer;
use crate::query::Query;
use crate::query::refused_name;
use crate::vocabularies::letta::dto::Ping;
use crate::vocabularies::letta::run_stream::{Guest, RunStreamFold, Voices};
use crate::vocabularies::turns::block_stream::{BEAT, BlockSource, event_stream, streamed};
use crate::vocabularies::turns::turn_events::TurnEvents;

/// Headers that only Letta's own clients send.
const LETTA_HEADERS: [&str; 2] = ["x-letta-source", "x-stainless-lang"];

/// The options of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) voices: Voices,
    pub(super) tokens: bool,
    pub(super) pings: bool,
    /// The client already has the events up to this one.
    pub(super) after: Sequence,
    pub(super) cancel_on_disconnect: bool,
}

impl Wanted {
    /// Reads the options from the headers and the query.
    pub(super) fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let query = Query::of(request)?;
        let guest = request.app_data::<web::Data<Guest>>().map(|guest| ***guest);
        let known = |name: &str, guest: Guest| {
            Voices::from_name(name, guest).ok_or_else(|| {
                let (name, guest) = (refused_name(name), guest.name);
                Problem::parameter(
                    "format",
                    format!("unknown format {name}; must be one of: letta, {guest}, both"),
                )
            })
        };
        let is_letta = || LETTA_HEADERS.iter().any(|name| request.headers().contains_key(*name));
        let voices = match (guest, query.get("format")) {
            (Some(guest), Some(name)) => known(name, guest)?,
            (Some(guest), None) if !is_letta() => Voices::both(guest),
            _ => Voices::LETTA,
        };
        let asked = ["cancelOnDisconnect", "cancel_on_disconnect"].map(|name| query.get(name));
        let cancel_on_disconnect = asked.iter().any(|value| matches!(value, Some("true" | "1")));
        Ok(Self { voices, tokens: false, pings: false, after: Sequence::START, cancel_on_disconnect })
    }
}

/// A turn, which may be queued, running or ended, and its events for one client.
pub(super) struct FollowedTurn<'a> {
    pub(super) api: &'a Api,
    pub(super) turn: &'a Turn,
    pub(super) events: TurnEvents,
    pub(super) place: StreamPlace,
}

impl<'a> FollowedTurn<'a> {
    pub(super) async fn new(api: &'a Api, request: &HttpRequest, turn: &'a Turn) -> Result<Self, Problem> {
        let place = api.open_stream(peer(request.peer_addr()))?;
        let events = TurnEvents::follow(api, turn.agent, turn).await?;
        Ok(Self { api, turn, events, place })
    }
}

/// Streams a turn.
pub(super) fn open(followed: FollowedTurn<'_>, wanted: Wanted) -> Result<HttpResponse, Problem> {
    let FollowedTurn { api, turn, events, place } = followed;
    let head = turn.last_sequence.unwrap_or_else(|| events.head());
    if head < wanted.after {
        return Err(api.service().cursor_ahead(head).into());
    }
    // Created only after the checks above, because a refused request must not cancel the turn.
    let leaving = wanted.cancel_on_disconnect.then(|| CancelOnLeave::new(api, turn));
    let config = api.config();
    let silence = if wanted.pings { config.ping } else { config.heartbeat };
    let source = LettaStream {
        api: api.clone(),
        events,
        fold: RunStreamFold::new(turn.agent, turn.number, wanted.voices, wanted.tokens, wanted.after),
        wanted,
        last: wanted.after,
        leaving,
    };
    Ok(event_stream().streaming(streamed(source, BEAT, silence, place)))
}

struct LettaStream {
    api: Api,
    events: TurnEvents,
    fold: RunStreamFold,
    wanted: Wanted,
    /// The number of the last event that the client has.
    last: Sequence,
    leaving: Option<CancelOnLeave>,
}

impl BlockSource for LettaStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        let page = self.events.page().await?;
        Ok(page.map(|page| self.frames(page.events())))
    }

    fn beat(&self) -> Bytes {
        if !self.wanted.pings {
            return BEAT;
        }
        let mut out = BlockWriter::default();
        let date = IsoTime(self.api.service().now());
        out.unnamed(&Ping::new(self.fold.run(), date, self.last.0));
        out.take()
    }
}

impl LettaStream {
    fn frames(&mut self, events: &[Event]) -> Bytes {
        let mut out = BlockWriter::default();
        for event in events {
            self.fold.event(event, &mut out);
            self.last = self.last.max(event.sequence);
            if matches!(event.body, EventBody::TurnResult(_))
                && let Some(leaving) = self.leaving.take()
            {
                leaving.stay();
            }
        }
        out.take()
    }
}

/// Cancels the turn if the client disconnects before the end of the turn.
pub(super) struct CancelOnLeave {
    service: AgentService,
    agent: AgentId,
    turn: TurnNumber,
    armed: bool,
}

impl CancelOnLeave {
    pub(super) fn new(api: &Api, turn: &Turn) -> Self {
        Self { service: api.service().clone(), agent: turn.agent, turn: turn.number, armed: true }
    }

    /// Disarms the cancel: whatever happens from here on, the client did not disconnect before the end.
    pub(super) fn stay(mut self) {
        self.armed = false;
    }
}

impl Drop for CancelOnLeave {
    fn drop(&mut self) {
        // A server that shuts down disconnects its clients. Their turns must not be cancelled for that.
        if self.armed && !self.service.closing().is_cancelled() {
            self.service.cancel_turn_in_background(self.agent, self.turn);
        }
    }
}
