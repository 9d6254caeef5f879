//! Follows a journal from a cursor on.

use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId, Sequence, Turn};

use crate::error::Refusal;
use crate::follow::{AfterLastTurn, Follower};
use crate::planted::{self, Bug};
use crate::reread::Rereader;
use crate::service::AgentService;

impl AgentService {
    /// Follows an agent from `since`, or from its newest event.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::CursorAhead`], [`Refusal::Store`].
    pub async fn follow(
        &self,
        id: AgentId,
        since: Option<Sequence>,
        after_last_turn: AfterLastTurn,
    ) -> Result<(Agent, Follower), Refusal> {
        // The tail is taken before the store is read, so that a commit in between is announced to it.
        let tail = self.core.tails.of(id);
        let agent = self.get(id).await?;
        let tail = planted::instead(Bug::SnapshotBeforeSubscribe, tail, || self.core.tails.of(id));
        tail.raise(agent.head);
        if !self.core.is_here(&agent) {
            tail.set_active(agent.status.is_active() || 0 < agent.queued);
        }
        let head = tail.state().head;
        let cursor = not_ahead(since.unwrap_or(head), head).map_err(|ahead| self.core.missing(ahead))?;
        let follower = Follower::new(&self.core, id, cursor, after_last_turn, Arc::clone(&tail));
        self.note_watched(&agent, &tail);
        Ok((agent, follower))
    }

    /// Follows a turn that waits, runs or has ended, from its first event on, and the journal after it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Store`].
    pub async fn follow_turn(&self, id: AgentId, turn: &Turn) -> Result<Follower, Refusal> {
        let before = |turn: &Turn| turn.first_sequence.map(Sequence::before);
        let (_, mut follower) = self.follow(id, before(turn), AfterLastTurn::Wait).await?;
        if turn.first_sequence.is_none() {
            // A waiting turn begins after the cursor of this follower, unless it started before the follower was
            // created.
            let now = self.turn(id, turn.number).await?;
            if let Some(begin) = now.as_ref().and_then(before) {
                (_, follower) = self.follow(id, Some(begin), AfterLastTurn::Wait).await?;
            }
        }
        Ok(follower)
    }

    /// Why a client gets nothing after a cursor that is ahead of `head`. After a failover of the database, it may try
    /// again.
    pub fn cursor_ahead(&self, head: Sequence) -> Refusal {
        self.core.missing(Refusal::CursorAhead { head })
    }

    /// Reads events of an agent once more, for a reader that has received them. It is no follower of the agent.
    pub fn reread(&self, id: AgentId) -> Rereader {
        Rereader::new(&self.core, id)
    }

    /// The cursor before the turn in which `cursor` lies, for readers that need the whole turn. `cursor` itself if it
    /// lies between two turns.
    ///
    /// # Errors
    /// [`Refusal::Store`].
    pub async fn turn_begin(&self, id: AgentId, cursor: Sequence) -> Result<Sequence, Refusal> {
        let turn = match self.turn_at(id, cursor.next()).await? {
            Some(next) => Some(next),
            // The next event belongs to the turn that has not ended, if there is one.
            None => self
                .turn_at(id, cursor)
                .await?
                .filter(|turn| turn.last_sequence.is_none_or(|last| cursor < last)),
        };
        let first = turn.and_then(|turn| turn.first_sequence);
        Ok(first.map_or(cursor, |first| first.before().min(cursor)))
    }
}

/// The requested cursor. Refused if it is ahead of the head.
pub(super) fn not_ahead(cursor: Sequence, head: Sequence) -> Result<Sequence, Refusal> {
    let cursor = planted::instead(Bug::AheadIsNothing, cursor, || cursor.min(head));
    if head < cursor { Err(Refusal::CursorAhead { head }) } else { Ok(cursor) }
}
