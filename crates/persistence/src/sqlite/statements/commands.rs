//! Changes of agents and turns, except those of an append.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::{
    Agent, AgentId, Copied, JsonText, Sequence, StopReason, Timestamp, Turn, TurnId, TurnNumber,
};
use tokenrail_ports::{Created, Deletion, Enqueued, Idempotency, NewTurn, StoreError, rules};

use crate::format::images;
use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::database::reserve::ReserveUse;
use crate::sqlite::statements::append::{UNARCHIVE, wait_again};
use crate::sqlite::statements::columns::agent_id_of;
use crate::sqlite::statements::idempotency;
use crate::sqlite::statements::journal::agent_key;
use crate::sqlite::statements::prompt_images;
use crate::sqlite::wipe;

const ID_IS_TAKEN: &str = "
    SELECT EXISTS (SELECT 1 FROM agents WHERE id = :id)
        OR EXISTS (SELECT 1 FROM tombstones WHERE id = :id)";

const OF_CHAT: &str = "SELECT id FROM agents WHERE chat = :chat AND deleted_at IS NULL";

const ADD_AGENT: &str = "
    INSERT INTO agents
        (id, type, name, chat, status, prompt, model, cwd, session_id, created_at, metadata, options,
         cancel_on_disconnect, copy, replay_of, replay_until, replay_speed, pinned, archived, launched_by,
         launch_depth)
    VALUES
        (:id, :type, :name, :chat, :status, :prompt, :model, :cwd, :session, :created_at, :metadata, :options,
         :cancel_on_disconnect, :copy, :replay_of, :replay_until, :replay_speed, :pinned, :archived, :launched_by,
         :launch_depth)";

const ADD_HEAD: &str = "
    INSERT INTO heads (agent, head, turn, running, spool_offset, updated_at)
    VALUES (:agent, 0, :turn, 0, 0, :updated_at)";

const ADD_TURN: &str = "
    INSERT INTO turns (agent, number, run, prompt, images, state, asked_at, spool_offset)
    VALUES (:agent, :number, :run, :prompt, :images, 'queued', :asked_at, 0)";

const QUEUE: &str = "
    SELECT agents.key,
        (SELECT count(*) FROM turns WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NULL),
        (SELECT count(*) FROM turns WHERE agent = agents.key AND state <> 'ended' AND state = 'queued' AND stop IS NOT NULL),
        (SELECT coalesce(max(number), 0) FROM turns WHERE agent = agents.key)
    FROM agents
    WHERE id = :id AND deleted_at IS NULL";

/// A command may have waited while newer events were saved.
const TOUCH: &str = "UPDATE heads SET updated_at = max(updated_at, :at) WHERE agent = :agent";

const CANCEL: &str = "
    UPDATE turns
    SET stop = 'cancelled'
    WHERE agent = :agent AND state <> 'ended' AND stop IS NULL";

const STOP_TURN: &str = "
    UPDATE turns
    SET stop = coalesce(stop, :reason)
    WHERE agent = :agent AND number = :number AND state <> 'ended'
    RETURNING stop";

const MARK_DELETED: &str = "UPDATE agents SET deleted_at = :at WHERE key = :agent AND deleted_at IS NULL";

const MARK_TO_PURGE: &str = "UPDATE agents SET to_purge = 1 WHERE key = :agent";

const REMOVE: &str = "DELETE FROM agents WHERE key = :agent";

const ADD_TOMBSTONE: &str = "INSERT INTO tombstones (id, purged_at) VALUES (:id, :at)";

pub(crate) struct CreateCommand {
    pub(crate) agent: Agent,
    pub(crate) turn: NewTurn,
    pub(crate) key: Option<Idempotency>,
}

impl WriteCommand for CreateCommand {
    type Answer = Created;

    fn bytes(&self) -> usize {
        self.agent.prompt.len() + self.turn.bytes()
    }

    fn run(&self, db: &Connection) -> Result<Created, WriteFailure> {
        if let Some(recalled) = idempotency::look_up(db, self.key.as_ref())? {
            return Ok(recalled.created());
        }
        refuse_taken_id(db, self.agent.id)?;
        let chat = named_params! { ":chat": self.agent.chat };
        let of_chat = db.prepare_cached(OF_CHAT)?.query_row(chat, |row| agent_id_of(row, 0)).optional()?;
        if let Some(taken) = of_chat {
            return Ok(Created::ChatTaken(taken));
        }
        let agent = add_agent(db, &self.agent)?;
        let turn = self.turn.turn();
        add_turn(db, agent, turn, turn.number)?;
        prompt_images::add(db, agent, turn.number, self.turn.images())?;
        idempotency::remember(db, self.key.as_ref(), agent, (turn.number, 1))?;
        Ok(Created::New)
    }
}

/// Creates an agent without a turn.
pub(crate) struct CreateIdleCommand {
    pub(crate) agent: Agent,
}

impl WriteCommand for CreateIdleCommand {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        refuse_taken_id(db, self.agent.id)?;
        add_agent(db, &self.agent)?;
        Ok(())
    }
}

pub(crate) struct EnqueueCommand {
    pub(crate) turn: NewTurn,
    pub(crate) queue_max: u32,
    pub(crate) key: Option<Idempotency>,
}

impl WriteCommand for EnqueueCommand {
    type Answer = Enqueued;

    fn bytes(&self) -> usize {
        self.turn.bytes()
    }

    fn run(&self, db: &Connection) -> Result<Enqueued, WriteFailure> {
        if let Some(recalled) = idempotency::look_up(db, self.key.as_ref())? {
            return Ok(recalled.enqueued());
        }
        let found: Option<(i64, u32, u32, u32)> = db
            .prepare_cached(QUEUE)?
            .query_row(named_params! { ":id": self.turn.turn().agent.to_string() }, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .optional()?;
        let Some((agent, waiting, cancelled, last)) = found else { return Ok(Enqueued::UnknownAgent) };
        let (number, queued) = (TurnNumber(last).next(), waiting + 1);
        if self.turn.refuses(number) {
            return Ok(Enqueued::OtherNumber);
        }
        if rules::is_queue_full(waiting, cancelled, self.queue_max) {
            return Ok(Enqueued::QueueFull);
        }
        let turn = Turn { run: number, ..self.turn.turn().clone() };
        add_turn(db, agent, &turn, number)?;
        prompt_images::add(db, agent, number, self.turn.images())?;
        wait_again(db, agent)?;
        touch(db, agent, turn.asked_at)?;
        let unarchived = 0 < db.prepare_cached(UNARCHIVE)?.execute(named_params! { ":agent": agent })?;
        idempotency::remember(db, self.key.as_ref(), agent, (number, queued))?;
        Ok(Enqueued::New { turn: number, queued, unarchived })
    }
}

/// Cancels all open turns.
pub(crate) struct CancelCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl WriteCommand for CancelCommand {
    type Answer = u32;

    fn run(&self, db: &Connection) -> Result<u32, WriteFailure> {
        let agent = agent_key(db, self.agent).map_err(WriteFailure::Refused)?;
        Ok(cancel(db, agent, self.at)?)
    }
}

pub(crate) struct StopTurnCommand {
    pub(crate) turn: TurnId,
    pub(crate) reason: StopReason,
}

impl WriteCommand for StopTurnCommand {
    type Answer = Option<StopReason>;

    fn run(&self, db: &Connection) -> Result<Option<StopReason>, WriteFailure> {
        let agent = agent_key(db, self.turn.agent).map_err(WriteFailure::Refused)?;
        let mut stop = db.prepare_cached(STOP_TURN)?;
        let values = named_params! {
            ":agent": agent,
            ":number": self.turn.number.0,
            ":reason": self.reason.as_str(),
        };
        let saved: Option<String> = stop.query_row(values, |row| row.get(0)).optional()?;
        Ok(saved.as_deref().and_then(StopReason::from_name))
    }
}

/// Marks an agent as deleted, and cancels all open turns.
pub(crate) struct DeleteCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
    pub(crate) deletion: Deletion,
}

impl WriteCommand for DeleteCommand {
    type Answer = bool;

    fn reserve_use(&self) -> ReserveUse {
        match self.deletion {
            Deletion::Purge => ReserveUse::All,
            Deletion::KeepHistory => ReserveUse::None,
        }
    }

    fn run(&self, db: &Connection) -> Result<bool, WriteFailure> {
        let Some(agent) = known(db, self.agent)? else { return Ok(false) };
        cancel(db, agent, self.at)?;
        if self.deletion == Deletion::Purge {
            db.prepare_cached(MARK_TO_PURGE)?.execute(named_params! { ":agent": agent })?;
        }
        let marked =
            db.prepare_cached(MARK_DELETED)?.execute(named_params! { ":agent": agent, ":at": self.at.0 })?;
        if 0 < marked {
            touch(db, agent, self.at)?;
        }
        Ok(true)
    }
}

/// Removes an agent's rows.
pub(crate) struct PurgeCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
}

impl WriteCommand for PurgeCommand {
    type Answer = bool;

    fn run(&self, db: &Connection) -> Result<bool, WriteFailure> {
        let Some(agent) = known(db, self.agent)? else { return Ok(false) };
        db.prepare_cached(REMOVE)?.execute(named_params! { ":agent": agent })?;
        db.prepare_cached(ADD_TOMBSTONE)?
            .execute(named_params! { ":id": self.agent.to_string(), ":at": self.at.0 })?;
        wipe::note(db)?;
        Ok(true)
    }

    fn empties_log(&self) -> bool {
        true
    }
}

/// Changes nothing: the commit is the answer.
pub(crate) struct ProbeCommand;

impl WriteCommand for ProbeCommand {
    type Answer = ();

    fn run(&self, _db: &Connection) -> Result<(), WriteFailure> {
        Ok(())
    }
}

pub(crate) fn add_agent(db: &Connection, agent: &Agent) -> rusqlite::Result<i64> {
    let replay = match &agent.copy {
        Some(Copied::Replay(replay)) => Some(replay),
        Some(Copied::File) | None => None,
    };
    db.prepare_cached(ADD_AGENT)?.execute(named_params! {
        ":id": agent.id.to_string(),
        ":type": agent.kind,
        ":name": agent.name,
        ":chat": agent.chat,
        ":status": agent.status.as_str(),
        ":prompt": agent.prompt,
        ":model": agent.model,
        ":cwd": agent.cwd,
        ":session": agent.session,
        ":created_at": agent.created_at.0,
        ":metadata": agent.metadata.as_ref().map(JsonText::as_str),
        ":options": agent.options.as_ref().map(JsonText::as_str),
        ":cancel_on_disconnect": agent.cancel_on_disconnect,
        ":copy": agent.copy.map(|copy| match copy {
            Copied::File => "file",
            Copied::Replay(_) => "replay",
        }),
        ":replay_of": replay.map(|replay| replay.of.to_string()),
        ":replay_until": replay.map(|replay| replay.until.0 as i64),
        ":replay_speed": replay.map(|replay| replay.speed),
        ":pinned": agent.pinned,
        ":archived": agent.archived,
        ":launched_by": agent.launched_by.map(|by| by.agent.to_string()),
        ":launch_depth": agent.launched_by.map(|by| by.depth),
    })?;
    let key = db.last_insert_rowid();
    db.prepare_cached(ADD_HEAD)?.execute(named_params! {
        ":agent": key,
        ":turn": agent.turn.0,
        ":updated_at": agent.updated_at.0,
    })?;
    Ok(key)
}

fn add_turn(db: &Connection, agent: i64, turn: &Turn, number: TurnNumber) -> rusqlite::Result<()> {
    db.prepare_cached(ADD_TURN)?.execute(named_params! {
        ":agent": agent,
        ":number": number.0,
        ":run": turn.run.0,
        ":prompt": turn.prompt,
        ":images": images::listed(&turn.images),
        ":asked_at": turn.asked_at.0,
    })?;
    Ok(())
}

/// An id is never used twice.
pub(crate) fn refuse_taken_id(db: &Connection, id: AgentId) -> Result<(), WriteFailure> {
    let taken = db
        .prepare_cached(ID_IS_TAKEN)?
        .query_row(named_params! { ":id": id.to_string() }, |row| row.get::<_, bool>(0))?;
    if taken { Err(WriteFailure::Refused(StoreError::Conflict { head: Sequence::START })) } else { Ok(()) }
}

/// The agent's key; `None` if the agent is unknown or purged.
fn known(db: &Connection, agent: AgentId) -> Result<Option<i64>, WriteFailure> {
    match agent_key(db, agent) {
        Ok(agent) => Ok(Some(agent)),
        Err(StoreError::UnknownAgent(_)) => Ok(None),
        Err(error) => Err(WriteFailure::Refused(error)),
    }
}

fn cancel(db: &Connection, agent: i64, at: Timestamp) -> rusqlite::Result<u32> {
    let noted = db.prepare_cached(CANCEL)?.execute(named_params! { ":agent": agent })?;
    if 0 < noted {
        touch(db, agent, at)?;
    }
    Ok(noted as u32)
}

fn touch(db: &Connection, agent: i64, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(TOUCH)?.execute(named_params! { ":agent": agent, ":at": at.0 })?;
    Ok(())
}
