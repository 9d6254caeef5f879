//! Adds a message to an agent: a turn that waits.

use std::sync::Arc;

use tokenrail_domain::{AgentId, Turn};
use tokenrail_ports::{Enqueued, Idempotency, NewTurn, StoreError, rules};
use uuid::Uuid;

use crate::postgres::command::{ChangeCommand, KeptChange};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::append::{unarchive_if_archived, wait_again};
use crate::postgres::statements::catch_up::{CatchUpTimes, may_lack_turns};
use crate::postgres::statements::columns::{column, turn_of};
use crate::postgres::statements::heads::{lock, lock_known, touch, touch_agent};
use crate::postgres::statements::kept_turn::{KeptTurn, is_there};
use crate::postgres::statements::new_turn::{FirstTimeline, add_turn};
use crate::postgres::statements::seen::note_repeated_turn;
use crate::postgres::statements::{idempotency, prompt_images};

const QUEUE: &str = "
    SELECT
        (SELECT count(*) FROM turns
         WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NULL),
        (SELECT count(*) FROM turns
         WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NOT NULL),
        (SELECT coalesce(max(number), 0) FROM turns WHERE agent = agents.key)
    FROM agents
    WHERE key = $1 AND deleted_at IS NULL";

pub(crate) struct EnqueueCommand {
    turn: NewTurn,
    queue_max: u32,
    key: Option<Idempotency>,
    /// Of this message. Another one may have the same text, from the same moment.
    id: Uuid,
    /// This node. 0 if it has not joined.
    node: i64,
    times: CatchUpTimes,
    first: FirstTimeline,
}

impl EnqueueCommand {
    pub(crate) fn new(
        turn: NewTurn,
        queue_max: u32,
        key: Option<Idempotency>,
        (node, times): (i64, CatchUpTimes),
    ) -> Self {
        Self { turn, queue_max, key, id: Uuid::now_v7(), node, times, first: FirstTimeline::default() }
    }
}

impl ChangeCommand for EnqueueCommand {
    type Answer = Enqueued;

    const IS_REPEATED: bool = true;

    fn agent(&self) -> Option<AgentId> {
        Some(self.turn.turn().agent)
    }

    async fn run(&self, db: &Link) -> Result<Enqueued, QueryFailure> {
        let locked = lock(db, self.turn.turn().agent).await?;
        if let Some(recalled) = idempotency::look_up(db, self.key.as_ref()).await? {
            return Ok(recalled.enqueued());
        }
        if may_lack_turns(db, self.node, self.times).await? {
            return Err(StoreError::Busy.into());
        }
        let Some(agent) = locked else { return Ok(Enqueued::UnknownAgent) };
        let Some(row) = db.row(QUEUE, &[&agent]).await? else { return Ok(Enqueued::UnknownAgent) };
        let (waiting, cancelled) = (column::<i64>(&row, 0)? as u32, column::<i64>(&row, 1)? as u32);
        let (number, queued) = (turn_of(&row, 2)?.next(), waiting + 1);
        if self.turn.refuses(number) {
            return Ok(Enqueued::OtherNumber);
        }
        if rules::is_queue_full(waiting, cancelled, self.queue_max) {
            return Ok(Enqueued::QueueFull);
        }
        let turn = Turn { run: number, ..self.turn.turn().clone() };
        add_turn(db, agent, &turn, (number, Some(self.id)), &self.first).await?;
        prompt_images::add(db, agent, number, self.turn.images()).await?;
        wait_again(db, agent).await?;
        touch(db, agent, turn.asked_at).await?;
        touch_agent(db, agent).await?;
        let unarchived = unarchive_if_archived(db, agent).await?;
        idempotency::remember(db, self.key.as_ref(), agent, (number, queued)).await?;
        Ok(Enqueued::New { turn: number, queued, unarchived })
    }

    async fn run_again(&self, db: &Link, first: &Enqueued) -> Result<Enqueued, QueryFailure> {
        if let Enqueued::New { turn: number, .. } = *first
            && let Some(agent) = lock(db, self.turn.turn().agent).await?
            && is_there(db, agent, self.turn.turn(), (number, self.id)).await? == Some(true)
        {
            return Ok(first.clone());
        }
        let again = self.run(db).await?;
        // The first run may have been saved, and lost by a failover since.
        if let Enqueued::New { .. } = again
            && db.since_failover().is_some()
        {
            let agent = lock_known(db, self.turn.turn().agent).await?;
            note_repeated_turn(db, agent).await?;
        }
        Ok(again)
    }

    fn kept(self, answer: &Enqueued, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Enqueued::New { turn: number, queued, unarchived: _ } = *answer else { return None };
        let Self { turn, queue_max: _, key, id, node: _, times: _, first } = self;
        Some(Arc::new(KeptTurn { turn, number, key: key.map(|key| (key, queued)), id, first }))
    }
}
