//! Changes of agents and turns, except those of an append.

use tokenrail_domain::{Agent, AgentId, Copied, JsonText, Sequence, StopReason, Timestamp, Turn, TurnNumber};
use tokenrail_ports::{Created, Enqueued, Epoch, Idempotency, NewTurn, StoreError, rules};

use crate::format::images;
use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::append::{unarchive_if_archived, wait_again};
use crate::postgres::statements::columns::{agent_id_of, bytes_of, column, int, maybe_parsed, turn_of};
use crate::postgres::statements::heads::{lock, lock_known, touch};
use crate::postgres::statements::keys;
use crate::postgres::statements::ownership::NODE;
use crate::postgres::statements::prompt_images;

const ID_IS_TAKEN: &str = "
    SELECT EXISTS (SELECT FROM agents WHERE id = $1) OR EXISTS (SELECT FROM tombstones WHERE id = $1)";

const OF_CHAT: &str = "
    SELECT id
    FROM agents
    WHERE sha256(chat) = sha256($1) AND chat = $1 AND chat IS NOT NULL AND deleted_at IS NULL";

const ADD_AGENT: &str = "
    INSERT INTO agents
        (id, type, name, chat, status, prompt, model, cwd, session_id, created_at, metadata, options,
         cancel_on_disconnect, copy, replay_of, replay_until, replay_speed, pinned, archived)
    VALUES
        ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    RETURNING key";

const ADD_HEAD: &str = "
    INSERT INTO heads (agent, head, turn, running, spool_offset, updated_at, owner, epoch)
    VALUES ($1, 0, $2, false, 0, $3, $4, $5)";

const ADD_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, asked_at, spool_offset)
    VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0)";

const QUEUE: &str = "
    SELECT
        (SELECT count(*) FROM turns
         WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NULL),
        (SELECT count(*) FROM turns
         WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NOT NULL),
        (SELECT coalesce(max(number), 0) FROM turns WHERE agent = agents.key)
    FROM agents
    WHERE key = $1 AND deleted_at IS NULL";

const CANCEL: &str = "
    UPDATE turns
    SET stop = 'cancelled'
    WHERE agent = $1 AND state <> 'ended' AND stop IS NULL";

const STOP_TURN: &str = "
    UPDATE turns
    SET stop = coalesce(stop, $3)
    WHERE agent = $1 AND number = $2 AND state <> 'ended'
    RETURNING stop";

const MARK_DELETED: &str = "UPDATE agents SET deleted_at = $2 WHERE key = $1 AND deleted_at IS NULL";

const MARK_TO_PURGE: &str = "UPDATE agents SET to_purge = true WHERE key = $1";

const REMOVE_JOURNAL: &str = "DELETE FROM journal WHERE agent = $1";

const REMOVE_MESSAGES: &str = "DELETE FROM agent_messages WHERE agent = $1";

const REMOVE: &str = "DELETE FROM agents WHERE key = $1";

const ADD_TOMBSTONE: &str = "INSERT INTO tombstones (id, purged_at) VALUES ($1, $2)";

pub(crate) struct CreateCommand {
    pub(crate) agent: Agent,
    pub(crate) turn: NewTurn,
    pub(crate) key: Option<Idempotency>,
}

impl ChangeCommand for CreateCommand {
    type Answer = Created;

    async fn run(&self, db: &Link) -> Result<Created, QueryFailure> {
        if let Some(recalled) = keys::look_up(db, self.key.as_ref()).await? {
            return Ok(recalled.created());
        }
        refuse_taken_id(db, self.agent.id).await?;
        if let Some(chat) = &self.agent.chat
            && let Some(row) = db.row(OF_CHAT, &[&chat.as_bytes()]).await?
        {
            return Ok(Created::ChatTaken(agent_id_of(&row, 0)?));
        }
        let agent = add_agent(db, &self.agent, Some(NODE)).await?;
        let turn = self.turn.turn();
        add_turn(db, agent, turn, turn.number).await?;
        prompt_images::add(db, agent, turn.number, self.turn.images()).await?;
        keys::remember(db, self.key.as_ref(), agent, (turn.number, 1)).await?;
        Ok(Created::New)
    }
}

/// Creates an agent without a turn.
pub(crate) struct CreateIdleCommand {
    pub(crate) agent: Agent,
}

impl ChangeCommand for CreateIdleCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        refuse_taken_id(db, self.agent.id).await?;
        add_agent(db, &self.agent, Some(NODE)).await?;
        Ok(())
    }
}

pub(crate) struct EnqueueCommand {
    pub(crate) turn: NewTurn,
    pub(crate) queue_max: u32,
    pub(crate) key: Option<Idempotency>,
}

impl ChangeCommand for EnqueueCommand {
    type Answer = Enqueued;

    async fn run(&self, db: &Link) -> Result<Enqueued, QueryFailure> {
        let locked = lock(db, self.turn.turn().agent).await?;
        if let Some(recalled) = keys::look_up(db, self.key.as_ref()).await? {
            return Ok(recalled.enqueued());
        }
        let Some(agent) = locked else { return Ok(Enqueued::UnknownAgent) };
        let Some(row) = db.row(QUEUE, &[&agent]).await? else { return Ok(Enqueued::UnknownAgent) };
        let (waiting, cancelled) = (column::<i64>(&row, 0)? as u32, column::<i64>(&row, 1)? as u32);
        if rules::is_queue_full(waiting, cancelled, self.queue_max) {
            return Ok(Enqueued::QueueFull);
        }
        let (number, queued) = (turn_of(&row, 2)?.next(), waiting + 1);
        let turn = Turn { run: number, ..self.turn.turn().clone() };
        add_turn(db, agent, &turn, number).await?;
        prompt_images::add(db, agent, number, self.turn.images()).await?;
        wait_again(db, agent).await?;
        touch(db, agent, turn.asked_at).await?;
        let unarchived = unarchive_if_archived(db, agent).await?;
        keys::remember(db, self.key.as_ref(), agent, (number, queued)).await?;
        Ok(Enqueued::New { turn: number, queued, unarchived })
    }
}

/// Cancels all open turns.
pub(crate) struct CancelCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl ChangeCommand for CancelCommand {
    type Answer = u32;

    async fn run(&self, db: &Link) -> Result<u32, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        cancel(db, agent, self.at).await
    }
}

pub(crate) struct StopTurnCommand {
    pub(crate) agent: AgentId,
    pub(crate) turn: TurnNumber,
    pub(crate) reason: StopReason,
}

impl ChangeCommand for StopTurnCommand {
    type Answer = Option<StopReason>;

    async fn run(&self, db: &Link) -> Result<Option<StopReason>, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        let saved = db.row(STOP_TURN, &[&agent, &int(self.turn.0), &self.reason.as_str()]).await?;
        let Some(row) = saved else { return Ok(None) };
        Ok(maybe_parsed(&row, 0, StopReason::from_name)?)
    }
}

/// Marks an agent as deleted, and cancels all open turns.
pub(crate) struct DeleteCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
    pub(crate) purge: bool,
}

impl ChangeCommand for DeleteCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some(agent) = lock(db, self.agent).await? else { return Ok(false) };
        cancel(db, agent, self.at).await?;
        if self.purge {
            db.run(MARK_TO_PURGE, &[&agent]).await?;
        }
        let marked = db.run(MARK_DELETED, &[&agent, &self.at.0]).await?;
        if 0 < marked {
            touch(db, agent, self.at).await?;
        }
        Ok(true)
    }
}

/// Removes an agent's rows.
pub(crate) struct PurgeCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl ChangeCommand for PurgeCommand {
    type Answer = bool;

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some(agent) = lock(db, self.agent).await? else { return Ok(false) };
        remove(db, agent).await?;
        db.run(ADD_TOMBSTONE, &[&self.agent.as_uuid(), &self.at.0]).await?;
        Ok(true)
    }
}

/// Writes to the log, and changes nothing: the commit is the answer.
pub(crate) struct ProbeCommand;

impl ChangeCommand for ProbeCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        db.barrier().await
    }
}

/// Removes all rows of an agent. It is locked.
pub(crate) async fn remove(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    for statement in [REMOVE_JOURNAL, REMOVE_MESSAGES, REMOVE] {
        db.run(statement, &[&agent]).await?;
    }
    Ok(())
}

/// Returns the key of the new agent.
pub(crate) async fn add_agent(db: &Link, agent: &Agent, owner: Option<i64>) -> Result<i64, QueryFailure> {
    let replay = match &agent.copy {
        Some(Copied::Replay(replay)) => Some(replay),
        Some(Copied::File) | None => None,
    };
    let copy = agent.copy.map(|copy| match copy {
        Copied::File => "file",
        Copied::Replay(_) => "replay",
    });
    let added = db
        .row(
            ADD_AGENT,
            &[
                &agent.id.as_uuid(),
                &agent.kind.as_bytes(),
                &bytes_of(agent.name.as_deref()),
                &bytes_of(agent.chat.as_deref()),
                &agent.status.as_str(),
                &agent.prompt.as_bytes(),
                &bytes_of(agent.model.as_deref()),
                &agent.cwd.as_bytes(),
                &bytes_of(agent.session.as_deref()),
                &agent.created_at.0,
                &bytes_of(agent.metadata.as_ref().map(JsonText::as_str)),
                &bytes_of(agent.options.as_ref().map(JsonText::as_str)),
                &agent.cancel_on_disconnect,
                &copy,
                &replay.map(|replay| replay.of.as_uuid()),
                &replay.map(|replay| replay.until.0 as i64),
                &replay.map(|replay| replay.speed),
                &agent.pinned,
                &agent.archived,
            ],
        )
        .await;
    // Another command has used the same id or conversation meanwhile.
    let added = added.map_err(|error| QueryFailure::from(error).if_taken(|| QueryFailure::Again))?;
    let key = added.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default();
    let epoch = Epoch::FIRST.0 as i64;
    db.run(ADD_HEAD, &[&key, &int(agent.turn.0), &agent.updated_at.0, &owner, &epoch]).await?;
    Ok(key)
}

async fn add_turn(db: &Link, agent: i64, turn: &Turn, number: TurnNumber) -> Result<(), QueryFailure> {
    db.run(
        ADD_TURN,
        &[
            &agent,
            &int(number.0),
            &int(turn.run.0),
            &turn.prompt.as_bytes(),
            &images::listed(&turn.images),
            &turn.asked_at.0,
        ],
    )
    .await?;
    Ok(())
}

/// An id is never used twice.
pub(crate) async fn refuse_taken_id(db: &Link, id: AgentId) -> Result<(), QueryFailure> {
    let row = db.row(ID_IS_TAKEN, &[&id.as_uuid()]).await?;
    let taken = row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or(true);
    if taken { Err(StoreError::Conflict { head: Sequence::START }.into()) } else { Ok(()) }
}

async fn cancel(db: &Link, agent: i64, at: Timestamp) -> Result<u32, QueryFailure> {
    let noted = db.run(CANCEL, &[&agent]).await?;
    if 0 < noted {
        touch(db, agent, at).await?;
    }
    Ok(noted as u32)
}
