//! When a stream is closed: when its agent can get no further event.
//!
//! A closed stream stays closed, so an agent that has ended does not close its stream: it accepts messages. The stream
//! of a deleted agent is closed, and that of a copy, as soon as no turn runs or waits.

use actix_web::HttpRequest;
use tokenrail_application::{AfterLastTurn, Follower, Refusal};
use tokenrail_domain::{Agent, AgentId};

use super::response::ReachedEnd;
use crate::api::{Api, StreamPlace};
use crate::error::Problem;
use crate::peer::peer;
use crate::vocabularies::durable_streams::offset::ReadFrom;

/// Whether the journal, as it was when the agent was read, is complete for good.
pub(super) fn is_closed(agent: &Agent) -> bool {
    accepts_no_messages(agent) && !agent.status.is_active() && agent.queued == 0
}

fn accepts_no_messages(agent: &Agent) -> bool {
    agent.deleted_at.is_some() || agent.copy.is_some()
}

/// A follower of a stream that may close.
pub(super) struct Followed {
    pub(super) follower: Follower,
    pub(super) agent: AgentId,
    _place: StreamPlace,
    /// If the agent accepts messages, only its deletion closes the stream, and the follower is told of that.
    closes_by_itself: bool,
}

impl Followed {
    /// Follows an agent from an offset on. A client that gets no place does not follow the agent.
    pub(super) async fn begin(
        api: &Api,
        request: &HttpRequest,
        agent: AgentId,
        from: ReadFrom,
    ) -> Result<Self, Problem> {
        let place = api.open_stream(peer(request.peer_addr()))?;
        let (known, follower) = api.service().follow(agent, from.since(), AfterLastTurn::Wait).await?;
        if !accepts_no_messages(&known) {
            return Ok(Self { follower, agent, _place: place, closes_by_itself: false });
        }
        // There are no later turns to wait for, and no follower is told of an earlier deletion.
        let (_, follower) = api.service().follow(agent, Some(follower.cursor()), AfterLastTurn::End).await?;
        Ok(Self { follower, agent, _place: place, closes_by_itself: true })
    }

    /// What follows after the follower was told that the agent is deleted. Its last turn may still be ending, and a
    /// purge removes events that the follower has not returned.
    ///
    /// # Errors
    /// [`Problem`] if the agent is purged and the follower has not returned everything.
    pub(super) async fn after_deletion(&self, api: &Api) -> Result<ReachedEnd, Problem> {
        let cursor = self.follower.cursor();
        match api.service().get(self.agent).await {
            Ok(agent) if cursor < agent.head => Ok(ReachedEnd::MoreFollows),
            Ok(agent) if is_closed(&agent) => Ok(ReachedEnd::Closed),
            Ok(_) => Ok(ReachedEnd::UpToDate),
            Err(Refusal::NotFound(_)) if self.follower.head() <= cursor => Ok(ReachedEnd::Closed),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// What follows after the events that the follower has returned.
    pub(super) async fn end(&self, api: &Api) -> Result<ReachedEnd, Problem> {
        if self.follower.cursor() < self.follower.head() {
            return Ok(ReachedEnd::MoreFollows);
        }
        if !self.closes_by_itself {
            return Ok(ReachedEnd::UpToDate);
        }
        match api.service().get(self.agent).await {
            Ok(agent) if is_closed(&agent) && agent.head <= self.follower.cursor() => Ok(ReachedEnd::Closed),
            Ok(_) => Ok(ReachedEnd::UpToDate),
            // It was purged.
            Err(Refusal::NotFound(_)) => Ok(ReachedEnd::Closed),
            Err(refusal) => Err(refusal.into()),
        }
    }
}
