//! The streams of runs and threads.

use bytes::Bytes;
use tokenrail_application::{AfterLastTurn, Follower, Next, Refusal, StreamEnd};
use tokenrail_domain::{Event, Sequence, TurnNumber};

use super::requests::{is_end_of, is_settled};
use crate::api::Api;
use crate::fold::Fold as _;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::fold::{AgUiFold, Scope};
use crate::vocabularies::ag_ui::unsent_writer::UnsentWriter;
use crate::vocabularies::turns::block_stream::BlockSource;
use crate::vocabularies::turns::turn_events::{TurnEvents, broken, cut};

/// One run.
pub(super) struct RunStream {
    events: TurnEvents,
    fold: AgUiFold,
    out: UnsentWriter,
}

impl RunStream {
    pub(super) fn new(events: TurnEvents, fold: AgUiFold, after: ThreadCursor) -> Self {
        Self { events, fold, out: UnsentWriter::new(after) }
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

/// All runs of a thread. The stream ends at a permission request that is open, whatever the agent does meanwhile: that
/// belongs to the run of the answer.
pub(super) struct ThreadStream {
    api: Api,
    follower: Follower,
    thread: String,
    fold: Option<(TurnNumber, AgUiFold)>,
    out: UnsentWriter,
    /// The newest permission request, if its end was not read with it.
    asked: Option<Asked>,
}

struct Asked {
    turn: TurnNumber,
    request: String,
    at: Sequence,
}

impl ThreadStream {
    pub(super) fn new(api: Api, follower: Follower, thread: String, after: ThreadCursor) -> Self {
        Self { api, follower, thread, fold: None, out: UnsentWriter::new(after), asked: None }
    }

    /// Goes on after a permission request if it is settled. Returns whether it is. May be dropped at any await.
    async fn go_on(&mut self) -> Result<bool, Refusal> {
        let Some(Asked { turn, request, at }) = &self.asked else { return Ok(true) };
        let agent = self.follower.agent();
        if !is_settled(&self.api, (agent, *turn), request, *at).await? {
            return Ok(false);
        }
        let (_, follower) = self.api.service().follow(agent, Some(*at), AfterLastTurn::End).await?;
        (self.follower, self.asked) = (follower, None);
        Ok(true)
    }

    /// Tells the events up to a permission request that may be open.
    fn tell(&mut self, events: &[Event]) {
        let agent = self.follower.agent();
        for (index, event) in events.iter().enumerate() {
            let fold = match &mut self.fold {
                Some((turn, fold)) if *turn == event.turn => fold,
                other => {
                    let fold = AgUiFold::new(agent, event.turn, self.thread.clone(), Scope::Thread);
                    &mut other.insert((event.turn, fold)).1
                }
            };
            fold.event(event, &mut self.out);
            let is_open = |request: &&str| !events[index + 1..].iter().any(|later| is_end_of(later, request));
            if let Some(request) = fold.waits_for().filter(is_open) {
                self.asked =
                    Some(Asked { turn: event.turn, request: request.to_owned(), at: event.sequence });
                return;
            }
        }
    }
}

impl BlockSource for ThreadStream {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        match self.go_on().await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(Refusal::NotFound(_)) => return Err(cut(StreamEnd::AgentDeleted)),
            Err(refusal) => return Err(broken(self.follower.agent(), &refusal)),
        }
        match self.follower.next().await {
            Ok(Next::Page(page)) => self.tell(page.events()),
            Ok(Next::End(StreamEnd::AgentEnded)) => return Ok(None),
            Ok(Next::End(end)) => return Err(cut(end)),
            Err(error) => return Err(broken(self.follower.agent(), &error)),
        }
        Ok(Some(self.out.take()))
    }
}
