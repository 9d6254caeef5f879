//! Imports: whole histories from outside.

mod kept;
mod rewrite;

use std::sync::Arc;

use tokenrail_domain::{Agent, AgentId, CommitId, Event, Sequence, StopReason, TurnState};
use tokenrail_ports::rules::{are_consecutive, may_finish_import};
use tokenrail_ports::{NewTurn, StoreError};

use crate::format::batch::BatchRange;
use crate::format::images;
use crate::format::latest_result::LatestResult;
use crate::format::packing::{self, Codec};
use crate::format::rows::{MessageRow, rows_of};
use crate::postgres::command::{ChangeCommand, KeptChange};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{bytes_of, int, sequence_of};
use crate::postgres::statements::commands::{add_agent, is_taken, refuse_taken_id};
use crate::postgres::statements::heads::lock;
use crate::postgres::statements::journal::{FetchLimit, add_batch, events_between};
use crate::postgres::statements::latest_result::save_result;
use crate::postgres::statements::message_row::add_messages;
use crate::postgres::statements::purge::remove;
use crate::postgres::statements::{prompt_images, turn_ends};

pub(crate) use rewrite::RewriteCommand;

const HIDE: &str = "UPDATE agents SET deleted_at = created_at, to_purge = true WHERE key = $1";

/// An agent whose import is not finished.
const IMPORTED: &str = "
    SELECT heads.head
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.key = $1 AND agents.copy = 'file' AND agents.to_purge";

const IS_SHOWN: &str = "SELECT FROM agents WHERE key = $1 AND copy = 'file' AND NOT to_purge";

const HAS_TURN: &str = "SELECT FROM turns WHERE agent = $1 AND number = $2";

const ADD_ENDED_TURN: &str = "
    INSERT INTO turns
        (agent, number, run, prompt, state, outcome, stop, asked_at, first_sequence, last_sequence, spool_offset,
         images, base_commit, compacted)
    VALUES ($1, $2, $3, $4, 'ended', $5, $6, $7, $8, $9, $10, $11, $12, true)";

const MOVE_HEAD: &str = "UPDATE heads SET head = $2 WHERE agent = $1";

const SHOW: &str = "
    UPDATE agents
    SET usage = $1, cost_usd = $2, error_class = $3, error_code = $4, error_text = $5,
        error_retry_after_ms = $6, error_recoverable = $7, status = $9, ended_at = $10, session_id = $11,
        deleted_at = NULL, to_purge = false
    WHERE key = $8";

const SHOW_HEAD: &str = "UPDATE heads SET turn = $2, updated_at = $3 WHERE agent = $1";

/// From now on, its batches can be compacted.
const TO_COMPACT: &str = "UPDATE turns SET compacted = false WHERE agent = $1";

/// Locks an agent whose import is not finished, and returns its key and its head.
async fn imported(db: &Link, id: AgentId) -> Result<Option<(i64, Sequence)>, QueryFailure> {
    let Some(agent) = lock(db, id).await? else { return Ok(None) };
    let row = db.row(IMPORTED, &[&agent]).await?;
    let head = row.as_ref().map(|row| sequence_of(row, 0)).transpose()?;
    Ok(head.map(|head| (agent, head)))
}

fn conflict(head: Sequence) -> QueryFailure {
    QueryFailure::Refused(StoreError::Conflict { head })
}

pub(crate) struct BeginImportCommand {
    /// This node: its home.
    pub(crate) node: i64,
    pub(crate) agent: Agent,
}

impl ChangeCommand for BeginImportCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        refuse_taken_id(db, self.agent.id).await?;
        let agent = add_agent(db, &self.agent, self.node, None).await?;
        db.run(HIDE, &[&agent]).await?;
        Ok(())
    }

    /// The id of the agent was made for this command.
    async fn run_again(&self, db: &Link, (): &()) -> Result<(), QueryFailure> {
        if is_taken(db, self.agent.id).await? { Ok(()) } else { self.run(db).await }
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

pub(crate) struct ImportTurnsCommand {
    pub(crate) agent: AgentId,
    pub(crate) turns: Vec<NewTurn>,
}

impl ChangeCommand for ImportTurnsCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let (agent, head) = imported(db, self.agent).await?.ok_or_else(|| conflict(Sequence::START))?;
        for new in &self.turns {
            let turn = new.turn();
            let TurnState::Ended(outcome) = turn.state else { return Err(conflict(head)) };
            let added = db
                .run(
                    ADD_ENDED_TURN,
                    &[
                        &agent,
                        &int(turn.number.0),
                        &int(turn.run.0),
                        &turn.prompt.as_bytes(),
                        &outcome.as_str(),
                        &turn.stop.map(StopReason::as_str),
                        &turn.asked_at.0,
                        &turn.first_sequence.map(|first| first.0 as i64),
                        &turn.last_sequence.map(|last| last.0 as i64),
                        &(turn.spool_offset as i64),
                        &images::listed_of_import(new),
                        &turn.base.as_ref().map(CommitId::as_str),
                    ],
                )
                .await;
            added.map_err(|error| QueryFailure::from(error).if_taken(|| conflict(head)))?;
            prompt_images::add(db, agent, turn.number, new.images()).await?;
        }
        Ok(())
    }

    /// When it ran first, there was no turn with one of these numbers.
    async fn run_again(&self, db: &Link, (): &()) -> Result<(), QueryFailure> {
        if let Some((agent, _)) = imported(db, self.agent).await?
            && let Some(new) = self.turns.first()
            && db.row(HAS_TURN, &[&agent, &int(new.turn().number.0)]).await?.is_some()
        {
            return Ok(());
        }
        self.run(db).await
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

pub(crate) struct ImportEventsCommand {
    agent: AgentId,
    events: Arc<[Event]>,
    codec: Codec,
    payload: Vec<u8>,
    rows: Vec<MessageRow>,
    fetch: FetchLimit,
}

impl ImportEventsCommand {
    /// Packs the events on the caller's thread.
    pub(crate) fn new(agent: AgentId, events: Arc<[Event]>, fetch: FetchLimit) -> Result<Self, StoreError> {
        let rows = rows_of(agent, &events)?;
        let (codec, payload) =
            packing::pack_quick(&events).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { agent, events, codec, payload, rows, fetch })
    }
}

impl ChangeCommand for ImportEventsCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let (agent, head) = imported(db, self.agent).await?.ok_or_else(|| conflict(Sequence::START))?;
        let (Some(first), Some(last)) = (self.events.first(), self.events.last()) else { return Ok(()) };
        if first.sequence != head.next() {
            let there = events_between(db, agent, (first.sequence, last.sequence), self.fetch).await?;
            return if there == *self.events { Ok(()) } else { Err(conflict(head)) };
        }
        if !are_consecutive(&self.events) {
            return Err(conflict(head));
        }
        let range = BatchRange { agent, first: first.sequence, last: last.sequence, turn: first.turn };
        add_batch(db, range, self.codec, &self.payload).await?;
        add_messages(db, agent, &self.rows).await.map_err(|failure| failure.if_taken(|| conflict(head)))?;
        db.run(MOVE_HEAD, &[&agent, &(last.sequence.0 as i64)]).await?;
        Ok(())
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

pub(crate) struct FinishImportCommand(pub(crate) Agent);

impl ChangeCommand for FinishImportCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let Agent { id, status, turn, ended_at, updated_at, session, usage, cost_usd, error, .. } = &self.0;
        let (agent, newest) = imported(db, *id).await?.ok_or_else(|| conflict(Sequence::START))?;
        if !may_finish_import(&self.0, newest) {
            return Err(conflict(newest));
        }
        let latest = LatestResult { usage: usage.as_ref(), cost_usd: *cost_usd, error: error.as_ref() };
        let (ended_at, session) = (ended_at.map(|at| at.0), bytes_of(session.as_deref()));
        save_result(db, SHOW, &latest, &[&agent, &status.as_str(), &ended_at, &session]).await?;
        db.run(SHOW_HEAD, &[&agent, &int(turn.0), &updated_at.0]).await?;
        db.run(TO_COMPACT, &[&agent]).await?;
        turn_ends::note(db, agent, None).await
    }

    /// The agent is shown only by this command.
    async fn run_again(&self, db: &Link, (): &()) -> Result<(), QueryFailure> {
        if let Some(agent) = lock(db, self.0.id).await?
            && db.row(IS_SHOWN, &[&agent]).await?.is_some()
        {
            return Ok(());
        }
        self.run(db).await
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

pub(crate) struct DiscardImportCommand(pub(crate) AgentId);

impl ChangeCommand for DiscardImportCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        match imported(db, self.0).await? {
            Some((agent, _)) => remove(db, agent).await,
            None => Ok(()),
        }
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}
