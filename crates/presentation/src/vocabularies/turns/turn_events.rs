//! The events of one turn, from its first event to its result. Vocabularies that respond to a message with a stream of
//! its turn fold these events.

use std::ops::Range;

use tokenrail_application::{Follower, Next, Page, StoreError, StreamEnd};
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, Turn, TurnNumber, TurnOutcome, TurnResult};

use crate::api::Api;
use crate::error::Problem;

/// A reader of one turn. It always begins with the turn's first event, so that the fold is the same for every client. A
/// client that reconnects skips the frames that it has, but not the events that the fold needs.
pub(crate) struct TurnEvents {
    follower: Follower,
    turn: TurnNumber,
    over: bool,
}

/// The result of [`TurnEvents::next`].
pub(crate) enum TurnNext {
    /// Consecutive events of the turn.
    Events(TurnPage),
    /// The turn has ended, and all its events were returned.
    Over,
    /// The stream ends before the turn does: the agent was deleted, or the server is stopping.
    Cut(StreamEnd),
}

/// The events of a page that belong to the turn.
pub(crate) struct TurnPage {
    page: Page,
    range: Range<usize>,
}

impl TurnPage {
    pub(crate) fn events(&self) -> &[Event] {
        &self.page.events()[self.range.clone()]
    }
}

impl TurnEvents {
    /// Follows a turn that is queued, runs or has ended.
    pub(crate) async fn follow(api: &Api, agent: AgentId, turn: &Turn) -> Result<Self, Problem> {
        let follower = api.service().follow_turn(agent, turn).await?;
        Ok(Self { follower, turn: turn.number, over: false })
    }

    /// The agent whose turn it is.
    pub(crate) fn agent(&self) -> AgentId {
        self.follower.agent()
    }

    /// The sequence number of the agent's newest known event, which may be of another turn.
    pub(crate) fn head(&self) -> Sequence {
        self.follower.head()
    }

    /// Waits for more of the turn. May be dropped at any await.
    ///
    /// # Errors
    /// [`StoreError`] if the history cannot be read. Calling again is safe.
    pub(crate) async fn next(&mut self) -> Result<TurnNext, StoreError> {
        while !self.over {
            if let Some(next) = self.read().await? {
                return Ok(next);
            }
        }
        Ok(TurnNext::Over)
    }

    /// Like [`Self::next`], but does not wait for new events. `None` if all known events were returned. May be dropped
    /// at any await.
    ///
    /// # Errors
    /// [`StoreError`] if the history cannot be read. Calling again is safe.
    pub(crate) async fn known(&mut self) -> Result<Option<TurnNext>, StoreError> {
        while !self.over && self.follower.cursor() < self.follower.head() {
            if let Some(next) = self.read().await? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// Waits for the next page of the agent. `None` if it has nothing of the turn.
    async fn read(&mut self) -> Result<Option<TurnNext>, StoreError> {
        let page = match self.follower.next().await? {
            Next::Page(page) => page,
            Next::End(end) => return Ok(Some(TurnNext::Cut(end))),
        };
        let events = page.events();
        let of_turn = |event: &Event| event.turn == self.turn;
        let begin = events.iter().position(of_turn).unwrap_or(events.len());
        let length = events[begin..].iter().take_while(|event| of_turn(event)).count();
        let range = begin..begin + length;
        self.over = events[range.clone()].iter().any(|it| matches!(it.body, EventBody::TurnResult(_)));
        Ok((!range.is_empty()).then(|| TurnNext::Events(TurnPage { page, range })))
    }

    /// Waits for more of the turn, for a stream that shows it. `None` after the last event. An error says why the
    /// stream must end before that. May be dropped at any await.
    pub(crate) async fn page(&mut self) -> Result<Option<TurnPage>, &'static str> {
        match self.next().await {
            Ok(TurnNext::Events(page)) => Ok(Some(page)),
            Ok(TurnNext::Over) => Ok(None),
            Ok(TurnNext::Cut(end)) => Err(cut(end)),
            Err(error) => Err(broken(self.follower.agent(), &error)),
        }
    }
}

/// Why a stream ends before what it shows.
pub(crate) fn cut(end: StreamEnd) -> &'static str {
    match end {
        StreamEnd::AgentEnded | StreamEnd::AgentDeleted => "the agent has been deleted",
        StreamEnd::ShuttingDown => "the server is shutting down: reconnect",
    }
}

/// Why a stream ends whose events cannot be read. If the error persists, the client gets it when it reconnects.
pub(crate) fn broken(agent: AgentId, error: &(dyn std::error::Error + 'static)) -> &'static str {
    tracing::error!(%agent, error, "the stream of a turn broke");
    "the stream was interrupted, but the turn continues: reconnect"
}

/// Why a turn has failed: a word, a sentence, and Tokenrail's own error code. `None` if it has not failed.
pub(crate) fn failure(result: &TurnResult) -> Option<(&str, &str, Option<&str>)> {
    match (result.outcome, &result.error) {
        (TurnOutcome::Completed | TurnOutcome::Cancelled, _) => None,
        (_, Some(error)) => Some((error.class.as_str(), &error.text, error.code.as_deref())),
        (TurnOutcome::Interrupted, None) => Some(("interrupted", "the turn was interrupted", None)),
        (TurnOutcome::Failed, None) => Some(("unknown", "the turn failed", None)),
    }
}
