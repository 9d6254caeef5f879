//! The events of one turn, from its first to its result: what the vocabularies fold that answer a message with a
//! stream of their own.

use std::ops::Range;

use tokenrail_application::{Follower, Next, Page, StoreError, StreamEnd};
use tokenrail_domain::{AgentId, Event, EventBody, Sequence, Turn, TurnNumber};

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
        let before = |turn: &Turn| turn.first_sequence.map(|first| Sequence(first.0.saturating_sub(1)));
        let (_, mut follower) = api.service().follow(agent, before(turn), true).await?;
        if turn.first_sequence.is_none() {
            // It begins after whatever there was when the follower came, unless it has begun before that.
            let now = api.service().turn(agent, turn.number).await?;
            if let Some(first) = now.as_ref().and_then(before) {
                (_, follower) = api.service().follow(agent, Some(first), true).await?;
            }
        }
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
