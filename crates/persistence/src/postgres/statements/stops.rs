//! Marks turns that are to be stopped.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{AgentId, StopReason, Timestamp, TurnId, TurnNumber};
use tokio_postgres::Row;

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, int, maybe_parsed, turn_of};
use crate::postgres::statements::heads::{lock_known, touch, touch_agent};

const CANCEL: &str = "
    UPDATE turns
    SET stop = 'cancelled'
    WHERE agent = $1 AND state <> 'ended' AND stop IS NULL
    RETURNING number";

const STOP_TURN: &str = "
    UPDATE turns
    SET stop = coalesce(stop, $3)
    WHERE agent = $1 AND number = $2 AND state <> 'ended'
    RETURNING stop";

/// Those of these turns that are cancelled.
const CANCELLED: &str = "
    SELECT number
    FROM turns
    WHERE agent = $1 AND number = ANY ($2) AND stop = 'cancelled'
    ORDER BY number";

const WHY_STOPPED: &str = "SELECT stop FROM turns WHERE agent = $1 AND number = $2";

const STOP_AGAIN: &str = "
    UPDATE turns
    SET stop = $3
    WHERE agent = $1 AND number = ANY ($2) AND state <> 'ended' AND stop IS NULL";

const KNOWN: &str = "SELECT count(*) FROM turns WHERE agent = $1 AND number = ANY ($2)";

/// Cancels all open turns. Returns those that it has marked.
pub(crate) struct CancelCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl ChangeCommand for CancelCommand {
    type Answer = Vec<TurnNumber>;

    const IS_REPEATED: bool = true;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<Vec<TurnNumber>, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        cancel(db, agent, self.at).await
    }

    /// Turns that came after the first run are not cancelled.
    async fn run_again(&self, db: &Link, first: &Vec<TurnNumber>) -> Result<Vec<TurnNumber>, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        let turns: Vec<i32> = first.iter().map(|turn| int(turn.0)).collect();
        if 0 < db.run(STOP_AGAIN, &[&agent, &turns, &StopReason::Cancelled.as_str()]).await? {
            touch(db, agent, self.at).await?;
            touch_agent(db, agent).await?;
        }
        let rows = db.rows(CANCELLED, &[&agent, &turns]).await?;
        Ok(rows.iter().map(|row| turn_of(row, 0)).collect::<Result<_, _>>()?)
    }

    /// Not the command: turns that came after it are not cancelled.
    fn kept(self, turns: &Vec<TurnNumber>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let turns = turns.clone();
        (!turns.is_empty()).then(|| KeptStop::new(self.agent, turns, StopReason::Cancelled))
    }
}

pub(crate) struct StopTurnCommand {
    pub(crate) turn: TurnId,
    pub(crate) reason: StopReason,
}

impl ChangeCommand for StopTurnCommand {
    type Answer = Option<StopReason>;

    const IS_REPEATED: bool = true;

    fn agent(&self) -> Option<AgentId> {
        Some(self.turn.agent)
    }

    async fn run(&self, db: &Link) -> Result<Option<StopReason>, QueryFailure> {
        let agent = lock_known(db, self.turn.agent).await?;
        let saved = db.row(STOP_TURN, &[&agent, &int(self.turn.number.0), &self.reason.as_str()]).await?;
        let Some(row) = saved else { return Ok(None) };
        touch_agent(db, agent).await?;
        Ok(maybe_parsed(&row, 0, StopReason::from_name)?)
    }

    /// The turn may have ended because of the first run.
    async fn run_again(
        &self,
        db: &Link,
        first: &Option<StopReason>,
    ) -> Result<Option<StopReason>, QueryFailure> {
        let saved = self.run(db).await?;
        if saved.is_some() || first.is_none() {
            return Ok(saved);
        }
        let agent = lock_known(db, self.turn.agent).await?;
        let row = db.row(WHY_STOPPED, &[&agent, &int(self.turn.number.0)]).await?;
        Ok(row.map(|row| maybe_parsed(&row, 0, StopReason::from_name)).transpose()?.flatten())
    }

    fn kept(self, reason: &Option<StopReason>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        reason.map(|reason| KeptStop::new(self.turn.agent, vec![self.turn.number], reason))
    }
}

/// Turns that were marked, for the case that a failover loses it.
struct KeptStop {
    agent: AgentId,
    turns: Vec<TurnNumber>,
    reason: StopReason,
}

impl KeptStop {
    #[expect(clippy::new_ret_no_self, reason = "everybody who makes one wants it as this")]
    fn new(agent: AgentId, turns: Vec<TurnNumber>, reason: StopReason) -> Arc<dyn KeptChange> {
        Arc::new(Self { agent, turns, reason })
    }
}

#[async_trait]
impl KeptChange for KeptStop {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.turns)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        let turns: Vec<i32> = self.turns.iter().map(|turn| int(turn.0)).collect();
        let marked = db.run(STOP_AGAIN, &[&agent, &turns, &self.reason.as_str()]).await?;
        if 0 < marked {
            touch_agent(db, agent).await?;
        }
        let row = db.row(KNOWN, &[&agent, &turns]).await?;
        let known = row.as_ref().map(|row| column::<i64>(row, 0)).transpose()?.unwrap_or_default();
        // The node that has queued a turn may not have repeated that yet.
        let is_missing = known < turns.len() as i64;
        Ok(if is_missing { Redone::Awaits(vec![self.agent]) } else { Redone::of_rows(marked) })
    }
}

/// Marks all open turns of an agent, which is locked. Returns those that were not marked before.
pub(crate) async fn cancel(db: &Link, agent: i64, at: Timestamp) -> Result<Vec<TurnNumber>, QueryFailure> {
    let rows = db.rows(CANCEL, &[&agent]).await?;
    let marked = rows.iter().map(|row: &Row| turn_of(row, 0)).collect::<Result<Vec<_>, _>>()?;
    if !marked.is_empty() {
        touch(db, agent, at).await?;
        touch_agent(db, agent).await?;
    }
    Ok(marked)
}
