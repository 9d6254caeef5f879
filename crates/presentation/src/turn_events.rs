//! The events of one turn, from its first to its result: what the vocabularies fold that answer a message with a
//! stream of their own.

use std::ops::Range;

use tokenrail_application::{Follower, Next, Page, StoreError, StreamEnd};
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, Turn, TurnNumber, TurnOutcome, TurnResult};

use crate::api::Api;
use crate::error::Problem;

/// A reader of one turn. Always from the turn's first event, so that a fold of it is the same for everybody: who
/// comes back leaves out what he has already, and not what the fold needs.
pub(crate) struct TurnEvents {
    follower: Follower,
    turn: TurnNumber,
    over: bool,
}

/// What came of asking for more.
pub(crate) enum TurnNext {
    /// Consecutive events of the turn.
    Events(TurnPage),
    /// The turn has ended, and all of it was given.
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
    /// Follows a turn that waits, runs or has ended.
    pub(crate) async fn follow(api: &Api, agent: AgentId, turn: &Turn) -> Result<Self, Problem> {
        let follower = api.service().follow_turn(agent, turn).await?;
        Ok(Self { follower, turn: turn.number, over: false })
    }

    /// The number of the newest event that is known, of this turn or of one before it.
    pub(crate) fn head(&self) -> Sequence {
        self.follower.head()
    }

    /// Waits for more of the turn. May be dropped at any await.
    ///
    /// # Errors
    /// [`StoreError`] where history cannot be read; asking again is safe.
    pub(crate) async fn next(&mut self) -> Result<TurnNext, StoreError> {
        while !self.over {
            let page = match self.follower.next().await? {
                Next::Page(page) => page,
                Next::End(end) => return Ok(TurnNext::Cut(end)),
            };
            let events = page.events();
            let of_turn = |event: &Event| event.turn == self.turn;
            let begin = events.iter().position(of_turn).unwrap_or(events.len());
            let length = events[begin..].iter().take_while(|event| of_turn(event)).count();
            let range = begin..begin + length;
            self.over = events[range.clone()].iter().any(|it| matches!(it.body, EventBody::TurnResult(_)));
            if !range.is_empty() {
                return Ok(TurnNext::Events(TurnPage { page, range }));
            }
        }
        Ok(TurnNext::Over)
    }
}

/// Why a turn has failed: a word, a sentence, and Tokenrail's own code.
pub(crate) fn failure(result: &TurnResult) -> Option<(&str, &str, Option<&str>)> {
    match (result.outcome, &result.error) {
        (TurnOutcome::Completed | TurnOutcome::Cancelled, _) => None,
        (_, Some(error)) => Some((error.class.as_str(), &error.text, error.code.as_deref())),
        (TurnOutcome::Interrupted, None) => Some(("interrupted", "the turn was interrupted", None)),
        (TurnOutcome::Failed, None) => Some(("unknown", "the turn failed", None)),
    }
}
