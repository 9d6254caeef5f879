//! The streams of runs and threads.

use bytes::Bytes;
use tokenrail_application::{Follower, Next, StreamEnd};
use tokenrail_domain::TurnNumber;

use crate::block_stream::BlockSource;
use crate::fold::Fold as _;
use crate::turn_events::{TurnEvents, broken, cut};
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::fold::{AgUiFold, Scope};
use crate::vocabularies::ag_ui::rest::Rest;

/// One run.
pub(super) struct RunStream {
    events: TurnEvents,
    fold: AgUiFold,
    out: Rest,
}

impl RunStream {
    pub(super) fn new(events: TurnEvents, fold: AgUiFold, after: ThreadCursor) -> Self {
        Self { events, fold, out: Rest::new(after) }
    }
}

impl BlockSource for RunStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.fold.is_over() {
            return Ok(None);
        }
        let Some(page) = self.events.page().await? else { return Ok(None) };
        for event in page.events() {
            self.fold.event(event, &mut self.out);
        }
        Ok(Some(self.out.take()))
    }
}

/// All runs of a thread.
pub(super) struct ThreadStream {
    follower: Follower,
    thread: String,
    fold: Option<(TurnNumber, AgUiFold)>,
    out: Rest,
}

impl ThreadStream {
    pub(super) fn new(follower: Follower, thread: String, after: ThreadCursor) -> Self {
        Self { follower, thread, fold: None, out: Rest::new(after) }
    }

    /// Whether the agent waits for an answer, and there is nothing else to send.
    fn is_interrupted(&self) -> bool {
        let is_waiting = self.fold.as_ref().is_some_and(|(_, fold)| fold.is_waiting());
        is_waiting && self.follower.head() <= self.follower.cursor()
    }
}

impl BlockSource for ThreadStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.is_interrupted() {
            return Ok(None);
        }
        let agent = self.follower.agent();
        let page = match self.follower.next().await {
            Ok(Next::Page(page)) => page,
            Ok(Next::End(StreamEnd::AgentEnded)) => return Ok(None),
            Ok(Next::End(end)) => return Err(cut(end)),
            Err(error) => return Err(broken(agent, &error)),
        };
        for event in page.events() {
            let fold = match &mut self.fold {
                Some((turn, fold)) if *turn == event.turn => fold,
                other => {
                    let fold = AgUiFold::new(agent, event.turn, self.thread.clone(), Scope::Thread);
                    &mut other.insert((event.turn, fold)).1
                }
            };
            fold.event(event, &mut self.out);
        }
        Ok(Some(self.out.take()))
    }
}
