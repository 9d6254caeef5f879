//! A reader's cursor. One delivery loop serves history, live events, reconnects, gaps and slow clients.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Event, Sequence};
use tokenrail_ports::{IAgentRepository, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::after_failover::AfterFailover;
use crate::batch::Batch;
use crate::core::Core;
use crate::planted::{self, Bug};
use crate::stretches::StoredEvents;
use crate::tails::{Tail, TailState};

/// A reader of one journal. It holds a cursor, and has no queue of its own.
pub struct Follower {
    agent: AgentId,
    cursor: Sequence,
    after_last_turn: AfterLastTurn,
    tail: Arc<Tail>,
    tail_state: watch::Receiver<TailState>,
    stored: StoredEvents,
    agents: Arc<dyn IAgentRepository>,
    is_shared: bool,
    after_failover: AfterFailover,
    closing: CancellationToken,
    draining: CancellationToken,
}

/// What a stream does when the agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLastTurn {
    /// It stays open for later turns.
    Wait,
    End,
}

/// The next events of a journal: those of `batch` from the `skip`-th on.
#[derive(Debug, Clone)]
pub struct Page {
    pub batch: Arc<Batch>,
    pub skip: usize,
}

impl Page {
    pub fn events(&self) -> &[Event] {
        &self.batch.events()[self.skip..]
    }
}

/// The outcome of [`Follower::next`].
#[derive(Debug, Clone)]
pub enum Next {
    Page(Page),
    End(StreamEnd),
}

/// How a stream ends, other than by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The reader has everything, and no turn runs or waits.
    AgentEnded,
    AgentDeleted,
    /// The server is shutting down. The client can reconnect with its cursor.
    ShuttingDown,
}

impl Follower {
    pub(crate) fn new(
        core: &Core,
        agent: AgentId,
        cursor: Sequence,
        after_last_turn: AfterLastTurn,
        tail: Arc<Tail>,
    ) -> Self {
        tail.follower_came();
        Self {
            agent,
            cursor,
            after_last_turn,
            tail_state: tail.subscribe(),
            stored: StoredEvents::new(core, agent, Arc::clone(&tail)),
            tail,
            agents: Arc::clone(&core.outside.agents),
            is_shared: core.outside.nodes.is_shared(),
            after_failover: AfterFailover::of(core),
            closing: core.closing.clone(),
            draining: core.draining.clone(),
        }
    }

    /// The agent that is followed.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// The number up to which events were returned.
    pub fn cursor(&self) -> Sequence {
        self.cursor
    }

    /// The newest event that is announced. It is committed.
    pub fn head(&self) -> Sequence {
        self.tail_state.borrow().head
    }

    /// Whether more may come: a turn runs or waits, or its end is being saved.
    pub fn expects_more(&self) -> bool {
        self.tail_state.borrow().active
    }

    /// Waits for the events after the cursor, and moves the cursor behind them. May be dropped at any await. Each
    /// stream of the presentation calls it again and again; the native WebSocket does in `ws/subscriptions.rs`.
    ///
    /// # Errors
    /// [`StoreError`] if history cannot be read. The cursor stays, so the caller can retry.
    pub async fn next(&mut self) -> Result<Next, StoreError> {
        loop {
            // The state is read before the events, so that a later commit wakes this loop again.
            let state = *self.tail_state.borrow_and_update();
            // Does nothing, except in the build that hunts for planted bugs.
            self.cursor = planted::skipping(Bug::DropOnLag, self.cursor, state.head);
            if self.cursor < state.head {
                let page = match self.page().await {
                    // What this reader waits for was lost by a failover. Its node repeats it soon, or the node that
                    // takes the agent over fills the journal up to there.
                    Err(StoreError::UnknownAgent(_))
                        if self.after_failover.may_be_behind() || self.is_there().await? =>
                    {
                        match self.pause().await {
                            Some(()) => continue,
                            None => return Ok(Next::End(StreamEnd::ShuttingDown)),
                        }
                    }
                    // The agent was purged while it was followed. The state may show that a little later.
                    Err(StoreError::UnknownAgent(_)) => return Ok(Next::End(StreamEnd::AgentDeleted)),
                    page => page?,
                };
                return Ok(Next::Page(page));
            }
            if state.gone {
                return Ok(Next::End(StreamEnd::AgentDeleted));
            }
            if !state.active && self.after_last_turn == AfterLastTurn::End {
                let end = self.end().await;
                if self.tail_state.has_changed().unwrap_or(false) {
                    continue;
                }
                return Ok(Next::End(end?));
            }
            // The state also shows this. A wait for `closing` takes a lock that all followers share, for each page.
            if state.closing {
                return Ok(Next::End(StreamEnd::ShuttingDown));
            }
            // Does nothing, except in that build.
            planted::losing_wake_up(Bug::LostWakeUp, &mut self.tail_state).await;
            if self.tail_state.changed().await.is_err() {
                return Ok(Next::End(StreamEnd::AgentEnded));
            }
        }
    }

    /// Returns why the stream ends if no turn is active: an agent's task ends after its last turn, and when the server
    /// shuts down.
    async fn end(&self) -> Result<StreamEnd, StoreError> {
        if !self.closing.is_cancelled() && !self.draining.is_cancelled() {
            if self.is_shared {
                self.look().await?;
            }
            return Ok(StreamEnd::AgentEnded);
        }
        Ok(match self.agents.open_turns(self.agent).await {
            Ok(open) if open.is_empty() => StreamEnd::AgentEnded,
            Ok(_) | Err(_) => StreamEnd::ShuttingDown,
        })
    }

    /// Whether a journal that ends before its head was lost in part, and not purged.
    async fn is_there(&self) -> Result<bool, StoreError> {
        let agent = if self.is_shared { self.agents.get(self.agent).await? } else { None };
        Ok(agent.is_some_and(|agent| agent.deleted_at.is_none()))
    }

    /// Returns `None` if the server shuts down meanwhile.
    async fn pause(&self) -> Option<()> {
        self.closing.run_until_cancelled(tokio::time::sleep(self.after_failover.pause)).await
    }

    /// On a shared store, the state is only what this node has heard. If a turn is open or more is saved, the state
    /// shows that afterwards, and the reader goes on.
    async fn look(&self) -> Result<(), StoreError> {
        let standings = self.agents.standings(vec![self.agent]).await?;
        if let Some(standing) = standings.first() {
            self.tail.raise(standing.head);
            if standing.open {
                self.tail.set_active(true);
            }
        }
        Ok(())
    }

    async fn page(&mut self) -> Result<Page, StoreError> {
        let wanted = self.cursor.next();
        let batch = match self.tail.batch_with(wanted) {
            Some(batch) => batch,
            None => self.stored.batch_with(wanted, self.head()).await?,
        };
        let skip = (wanted.0 - batch.first().0) as usize;
        self.cursor = batch.last();
        self.tail.pace.serve(self.cursor);
        Ok(Page { batch, skip })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.tail.follower_left();
    }
}
