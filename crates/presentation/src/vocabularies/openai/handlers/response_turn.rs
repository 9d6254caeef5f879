//! Finds the turn of a response, and reads what the journal has of it.

use std::time::Duration;

use actix_web::HttpRequest;
use tokenrail_application::{Deletion, ListPage, Prompts, TurnRange};
use tokenrail_domain::{Agent, AgentId, Turn, TurnNumber};
use tokio::time::timeout;

use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::events;
use crate::fold::{Fold as _, Silence};
use crate::peer::peer;
use crate::vocabularies::openai::fold::ResponsesFold;
use crate::vocabularies::openai::response_id::ResponseId;
use crate::vocabularies::turns::turn_events::{TurnEvents, TurnNext};

/// How long a cancel waits for the end of the turn. A turn that takes longer to stop is still in progress then.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// How many turns are read at once.
const TURNS: usize = 100;

/// A turn, and its agent.
pub(super) struct ResponseTurn {
    pub(super) agent: Agent,
    pub(super) turn: Turn,
}

pub(super) fn missing() -> Problem {
    Problem::new(Code::NotFound, "no such response")
}

pub(super) fn missing_completion() -> Problem {
    Problem::new(Code::NotFound, "no such chat completion")
}

impl ResponseTurn {
    /// Finds a response. Those of a deleted agent are gone.
    pub(super) async fn find(api: &Api, id: &str) -> Result<Self, Problem> {
        let id: ResponseId = id.parse().map_err(|_| missing())?;
        Self::read(api, id).await?.ok_or_else(missing)
    }

    /// Finds the turn of a chat completion.
    pub(super) async fn find_completion(api: &Api, id: &str) -> Result<Self, Problem> {
        let id = ResponseId::of_completion(id).map_err(|_| missing_completion())?;
        Self::read(api, id).await?.ok_or_else(missing_completion)
    }

    pub(super) async fn read(api: &Api, id: ResponseId) -> Result<Option<Self>, Problem> {
        // The agent is read last, so its newest event is not older than the turn.
        let turn = match api.service().turn(id.agent, id.turn).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(None),
            Err(refusal) => return none_if_missing(refusal.into()),
        };
        match api.service().get(id.agent).await {
            Ok(agent) if agent.deleted_at.is_none() => Ok(Some(Self { agent, turn })),
            Ok(_) => Ok(None),
            Err(refusal) => none_if_missing(refusal.into()),
        }
    }

    pub(super) fn id(&self) -> ResponseId {
        ResponseId { agent: self.turn.agent, turn: self.turn.number }
    }

    fn fold(&self, api: &Api) -> ResponsesFold {
        ResponsesFold::new(&self.agent, &self.turn, api.config().chat_bytes)
    }

    /// The response as it is now.
    pub(super) async fn now(&self, api: &Api) -> Result<ResponsesFold, Problem> {
        let Self { agent, turn } = self;
        let mut fold = self.fold(api);
        if let Some(first) = turn.first_sequence {
            let (mut cursor, last) = (first.before(), turn.last_sequence.unwrap_or(agent.head));
            loop {
                let events = events::page(api.service(), turn.agent, cursor, last).await?;
                let Some(newest) = events.last() else { break };
                cursor = newest.sequence;
                for event in events.iter().filter(|event| event.turn == turn.number) {
                    fold.event(event, &mut Silence);
                }
            }
        }
        Ok(fold)
    }

    /// Waits until the turn has stopped, but not for long.
    pub(super) async fn stopped(&self, api: &Api) -> Result<(), Problem> {
        let mut events = TurnEvents::follow(api, self.turn.agent, &self.turn).await?;
        let stop = async {
            while let TurnNext::Events(_) = events.next().await? {}
            Ok(())
        };
        timeout(STOP_WAIT, stop).await.unwrap_or(Ok(()))
    }

    /// Deletes the agent with all its responses, if this is the newest one.
    pub(super) async fn delete_conversation(&self, api: &Api, param: &'static str) -> Result<(), Problem> {
        let agent = self.turn.agent;
        if surely_following(api, self.id(), Turn::is_own).await?.1.is_some() {
            return Err(Problem::field(
                param,
                "this response cannot be deleted alone, because another one follows it; to delete the whole \
                 conversation, delete its newest response",
            ));
        }
        api.service().delete(agent, Deletion::KeepHistory).await?;
        Ok(())
    }

    /// Follows the turn for one client.
    pub(super) async fn follow(self, api: &Api, place: StreamPlace) -> Result<FollowedResponse, Problem> {
        let events = TurnEvents::follow(api, self.turn.agent, &self.turn).await?;
        Ok(FollowedResponse { fold: self.fold(api), events, place })
    }
}

/// The first turn after a response that the client may know, or the number of the next one if there is none.
/// `is_unknown`: whether the client does not know a turn. No client has asked for those that the agent began by itself.
///
/// After a failover, turns that will be saved again may be missing: see [`surely_following`].
pub(super) async fn following(
    api: &Api,
    response: ResponseId,
    is_unknown: impl Fn(&Turn) -> bool,
) -> Result<(TurnNumber, Option<Turn>), Problem> {
    let (agent, mut last) = (response.agent, response.turn);
    loop {
        let turns = api.service().turns(agent, last, TURNS).await?;
        let Some(newest) = turns.last().map(|turn| turn.number) else { return Ok((last.next(), None)) };
        if let Some(following) = turns.into_iter().find(|turn| !is_unknown(turn)) {
            return Ok((following.number, Some(following)));
        }
        last = newest;
    }
}

/// The same. Fails as long as a turn may be missing.
pub(super) async fn surely_following(
    api: &Api,
    response: ResponseId,
    is_unknown: impl Fn(&Turn) -> bool,
) -> Result<(TurnNumber, Option<Turn>), Problem> {
    loop {
        let (next, found) = following(api, response, &is_unknown).await?;
        if found.is_some() {
            return Ok((next, found));
        }
        match api.service().turn(response.agent, next).await? {
            // It was saved meanwhile.
            Some(turn) if is_unknown(&turn) => {}
            found => return Ok((next, found)),
        }
    }
}

/// The newest turn of an agent that a message began. `None` if there is none.
pub(super) async fn newest_message(api: &Api, agent: AgentId) -> Result<Option<TurnNumber>, Problem> {
    let mut range = TurnRange { newest_first: true, limit: TURNS, ..TurnRange::default() };
    loop {
        let ListPage { items, more } = api.service().list_turns(agent, range, Prompts::LeftOut).await?;
        range.before = items.last().map(|listed| listed.turn.number);
        if let Some(newest) = items.iter().find(|listed| !listed.turn.is_own()) {
            return Ok(Some(newest.turn.number));
        }
        if !more {
            return Ok(None);
        }
    }
}

/// Takes the place of a stream. Before a turn begins, so that a client that gets none has begun none.
pub(super) fn place(api: &Api, request: &HttpRequest) -> Result<StreamPlace, Problem> {
    api.open_stream(peer(request.peer_addr()))
}

fn none_if_missing<T>(problem: Problem) -> Result<Option<T>, Problem> {
    if problem.code == Code::NotFound { Ok(None) } else { Err(problem) }
}

/// A response that waits, runs or has ended, and its events for one client.
pub(super) struct FollowedResponse {
    pub(super) fold: ResponsesFold,
    pub(super) events: TurnEvents,
    pub(super) place: StreamPlace,
}
