//! Waits for an agent, but not for long: clients give up on a tool that does not return.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenrail_application::{AfterLastTurn, Follower, Next, Refusal, StreamEnd};
use tokenrail_domain::{Agent, Sequence};
use tokio::time::{Instant, timeout_at};

use super::reading::{self, refuse_ahead};
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::mcp::dto::{
    AgentState, CallToolResult, InputRequired, ReadResult, ReadWish, WaitReason, WaitResult, Waited,
};
use crate::vocabularies::mcp::entries::{EntryPage, OpenAsked};

/// How long a wait goes on after its end to read what is there already. After a failover of the database, that may be
/// away for a while.
const READING: Duration = Duration::from_secs(4);

/// How many events are read at most after the end of a wait, to find the open requests.
const LOOK_EVENTS: usize = 20_000;

/// A wait that has begun.
pub(super) struct Wait {
    /// As it was when the wait began.
    agent: Agent,
    read: ReadWish,
    follower: Follower,
    page: EntryPage,
    open: OpenAsked,
    until: Instant,
    /// Whether any events after the cursor were read. An agent that always has more to say must not prolong the wait.
    has_read: bool,
    reason: Option<WaitReason>,
    asking: Asking,
}

/// How the person at the client is asked what the agent asks.
#[derive(Default)]
pub(super) struct Asking {
    /// With forms. Otherwise, the client's model reads the requests in the result.
    pub(super) forms: bool,
    /// The requests that the person has answered. The agent may not have heard of it yet.
    pub(super) answered: Vec<String>,
    /// Why the agent does not accept the answers to others.
    pub(super) refused: BTreeMap<String, String>,
}

impl Wait {
    /// The follower begins with the turn of the cursor, because a request may be open that the client has seen.
    pub(super) async fn begin(
        api: &Api,
        read: ReadWish,
        until: Instant,
        asking: Asking,
    ) -> Result<Self, Problem> {
        // A cursor that is ahead of the head is refused, like everywhere.
        let agent = api.service().get(read.agent).await?;
        refuse_ahead(api, read.agent, read.since, agent.head).await?;
        let begin = api.service().turn_begin(read.agent, read.since).await?;
        let (_, follower) = api.service().follow(read.agent, Some(begin), AfterLastTurn::End).await?;
        let page = EntryPage::new(read.since, read.bytes);
        Ok(Self {
            agent,
            read,
            follower,
            page,
            open: OpenAsked::default(),
            until,
            has_read: false,
            reason: None,
            asking,
        })
    }

    /// How far the agent is, and how many entries there are.
    pub(super) fn progress(&self) -> (Sequence, usize) {
        (self.follower.cursor(), self.page.len())
    }

    /// Waits for more. Returns whether the wait goes on. May be dropped at any await.
    ///
    /// A request that the client has seen does not end the wait: somebody else may answer it.
    pub(super) async fn step(&mut self) -> Result<bool, Problem> {
        let reason = if self.page.is_full() {
            WaitReason::PageFull
        } else if self.has_all() && self.open.has_newer(self.read.since, &self.asking.answered) {
            WaitReason::NeedsAnswer
        } else if self.has_read && self.expects_more() && self.until <= Instant::now() {
            WaitReason::Timeout
        } else {
            match self.next().await? {
                None => WaitReason::Timeout,
                Some(next) => match next {
                    Next::Page(page) => {
                        let before = self.page.up_to();
                        for event in page.events() {
                            self.open.event(event);
                            self.page.event(event);
                        }
                        self.has_read |= before < self.page.up_to();
                        return Ok(true);
                    }
                    Next::End(StreamEnd::AgentEnded) => WaitReason::Ended,
                    Next::End(StreamEnd::AgentDeleted) => return Err(Refusal::Deleted.into()),
                    Next::End(StreamEnd::ShuttingDown) => WaitReason::ShuttingDown,
                },
            }
        };
        self.reason = Some(reason);
        Ok(false)
    }

    /// What there is to read comes, even if it is late: with the next call, it would be no earlier. `None` if there is
    /// nothing in time.
    async fn next(&mut self) -> Result<Option<Next>, Problem> {
        // An agent that has ended says so after a look.
        let is_there = !self.has_all() || !self.follower.expects_more();
        let until = if is_there { self.until + READING } else { self.until };
        match timeout_at(until, self.follower.next()).await {
            // What was read is not lost if the database fails now. The next call goes on.
            Ok(Err(error)) if self.has_read && error.is_transient() => Ok(None),
            Ok(next) => Ok(Some(next?)),
            Err(_) => Ok(None),
        }
    }

    /// Whether there is more to read, or may be.
    fn expects_more(&self) -> bool {
        !self.has_all() || self.follower.expects_more()
    }

    fn has_all(&self) -> bool {
        self.follower.head() <= self.follower.cursor()
    }

    /// Looks for open requests in what the wait did not read, but not without end: then none are known.
    async fn look_ahead(&mut self) -> Result<(), Problem> {
        let mut count = 0;
        let until = self.until + READING;
        while !self.has_all() {
            let page = match timeout_at(until, self.follower.next()).await {
                Ok(Ok(Next::Page(page))) => page,
                Ok(Ok(Next::End(_))) => break,
                Ok(Err(error)) if !error.is_transient() => return Err(error.into()),
                Ok(Err(_)) | Err(_) => {
                    self.open = OpenAsked::default();
                    break;
                }
            };
            count += page.events().len();
            if LOOK_EVENTS < count {
                self.open = OpenAsked::default();
                break;
            }
            for event in page.events() {
                self.open.event(event);
            }
        }
        Ok(())
    }

    /// Whether it took too long to read the turn up to the cursor. It would take as long with each further call.
    fn is_stuck(&self) -> bool {
        matches!(self.reason, Some(WaitReason::Timeout)) && self.follower.cursor() < self.read.since
    }

    /// Reads what comes after the cursor without what comes before it, so that the next call begins further on. Which
    /// requests are open is not known then. If even this takes too long, nothing is read.
    async fn read_after_cursor(&mut self, api: &Api) -> Result<(), Problem> {
        self.open = OpenAsked::default();
        self.until = Instant::now();
        let page = reading::page(api, self.read, self.follower.head());
        if let Ok(page) = timeout_at(self.until + READING, page).await {
            self.page = page?;
        }
        self.until = Instant::now();
        Ok(())
    }

    /// Waits to the end.
    pub(super) async fn finish(mut self, api: &Api) -> Result<Waited, Problem> {
        while self.step().await? {}
        self.result(api).await
    }

    /// The result, once the wait is over. Whatever has ended it, the person is asked first: the client moves its cursor
    /// past the request otherwise, and would never be asked.
    pub(super) async fn result(mut self, api: &Api) -> Result<Waited, Problem> {
        let is_stuck = self.is_stuck();
        if is_stuck {
            self.read_after_cursor(api).await?;
        } else {
            self.look_ahead().await?;
        }
        let up_to = self.page.up_to();
        let mut reason = self.reason.unwrap_or(WaitReason::Timeout);
        let agent = match timeout_at(self.until + READING, api.service().get(self.agent.id)).await {
            Ok(Ok(agent)) => {
                if is_stuck && agent.head <= up_to && !agent.status.is_active() {
                    reason = WaitReason::Ended;
                }
                agent
            }
            Ok(Err(refusal)) if !is_transient(&refusal) => return Err(refusal.into()),
            // What was read is not lost with a database that does not answer. The next call says how the agent is.
            Ok(Err(_)) | Err(_) => {
                if matches!(reason, WaitReason::Ended) && self.agent.status.is_active() {
                    reason = WaitReason::Timeout;
                }
                Agent { head: up_to, ..self.agent }
            }
        };
        if self.asking.forms {
            let Asking { answered, refused, .. } = &self.asking;
            let newer = self.open.newer(self.read.since, answered);
            let still_open = answered.iter().filter(|request| self.open.has(request)).cloned().collect();
            if let Some(required) = InputRequired::new(&agent, newer, still_open, refused) {
                return Ok(Waited::Asks(required));
            }
        }
        let more = up_to < self.follower.head();
        Ok(Waited::Over(CallToolResult::of(&WaitResult {
            reason,
            read: ReadResult {
                agent: AgentState::from(agent),
                entries: self.page.into_entries(),
                next_since: up_to.0,
                more,
            },
            open_requests: self.open.into_list(),
        })))
    }
}

fn is_transient(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Store(error) if error.is_transient())
}
