//! Changes of agents and turns, except those of an append. `stops.rs` has those that stop turns.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentId, Copied, JsonText, Sequence, Timestamp};
use tokenrail_ports::{Created, Deletion, Epoch, Idempotency, NewTurn, StoreError};

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::catch_up::{CatchUpTimes, may_lack_turns};
use crate::postgres::statements::columns::{agent_id_of, bytes_of, column, int};
use crate::postgres::statements::fence::is_still;
use crate::postgres::statements::heads::{lock, touch};
use crate::postgres::statements::new_turn::{FirstTimeline, add_turn};
use crate::postgres::statements::seen::note_repeated_turn;
use crate::postgres::statements::stops::cancel;
use crate::postgres::statements::{idempotency, prompt_images};

const ID_IS_TAKEN: &str = "
    SELECT EXISTS (SELECT FROM agents WHERE id = $1) OR EXISTS (SELECT FROM tombstones WHERE id = $1)";

const OF_CHAT: &str = "
    SELECT id
    FROM agents
    WHERE sha256(chat) = sha256($1) AND chat = $1 AND chat IS NOT NULL AND deleted_at IS NULL";

const ADD_AGENT: &str = "
    INSERT INTO agents
        (id, type, name, chat, status, prompt, model, cwd, session_id, created_at, metadata, options,
         cancel_on_disconnect, copy, replay_of, replay_until, replay_speed, pinned, archived, home,
         launched_by, launch_depth)
    VALUES
        ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
         $21, $22)
    RETURNING key";

const ADD_HEAD: &str = "
    INSERT INTO heads (agent, head, turn, running, spool_offset, updated_at, owner, epoch)
    VALUES ($1, 0, $2, false, 0, $3, $4, $5)";

const MARK_DELETED: &str = "UPDATE agents SET deleted_at = $2 WHERE key = $1 AND deleted_at IS NULL";

const MARK_TO_PURGE: &str = "UPDATE agents SET to_purge = true WHERE key = $1";

pub(crate) struct CreateCommand {
    /// This node: its home and its owner.
    pub(crate) node: JoinedNode,
    pub(crate) agent: Agent,
    pub(crate) turn: NewTurn,
    pub(crate) key: Option<Idempotency>,
    pub(crate) times: CatchUpTimes,
    /// Of its turn.
    pub(crate) first: FirstTimeline,
}

/// Which run of a command that creates an agent this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreateRun {
    First,
    /// A run before it may have been saved, also while this one looks.
    Again,
    /// It was acknowledged once, so it must be there. If another process is the node by now, that one finds it among
    /// its errands.
    Redone,
}

impl CreateCommand {
    /// The id of the agent was made for this command: what has this id was saved by it.
    async fn create(&self, db: &Link, this: CreateRun) -> Result<Created, QueryFailure> {
        if let Some(recalled) = idempotency::look_up(db, self.key.as_ref()).await? {
            let is_own = this == CreateRun::Again && recalled.agent == self.agent.id;
            return Ok(if is_own { Created::New } else { recalled.created() });
        }
        match this {
            CreateRun::Again if is_taken(db, self.agent.id).await? => return Ok(Created::New),
            CreateRun::Again => {}
            CreateRun::First | CreateRun::Redone => refuse_taken_id(db, self.agent.id).await?,
        }
        if let Some(chat) = &self.agent.chat
            && let Some(row) = db.row(OF_CHAT, &[&chat.as_bytes()]).await?
        {
            let by = agent_id_of(&row, 0)?;
            let is_own = this == CreateRun::Again && by == self.agent.id;
            return Ok(if is_own { Created::New } else { Created::ChatTaken(by) });
        }
        // Another node may still repeat that it has used the key, or that an agent has the conversation.
        let may_be_used = self.key.is_some() || self.agent.chat.is_some();
        if this != CreateRun::Redone && may_be_used && may_lack_turns(db, self.node.id, self.times).await? {
            return Err(StoreError::Busy.into());
        }
        let home = self.agent.home.map_or(self.node.id, |home| home.0 as i64);
        let is_mine = home == self.node.id;
        let owner = (is_mine && is_still(db, self.node).await?).then_some(self.node.id);
        match this {
            CreateRun::First if is_mine && owner.is_none() => return Err(StoreError::Fenced.into()),
            // Nobody knows yet whether it was saved, so it is not refused.
            CreateRun::Again if is_mine && owner.is_none() => return Err(StoreError::Busy.into()),
            CreateRun::First | CreateRun::Again | CreateRun::Redone => {}
        }
        let agent = add_agent(db, &self.agent, home, owner).await?;
        let turn = self.turn.turn();
        add_turn(db, agent, turn, (turn.number, None), &self.first).await?;
        if this != CreateRun::First && db.since_failover().is_some() {
            note_repeated_turn(db, agent).await?;
        }
        prompt_images::add(db, agent, turn.number, self.turn.images()).await?;
        idempotency::remember(db, self.key.as_ref(), agent, (turn.number, 1)).await?;
        Ok(Created::New)
    }
}

impl ChangeCommand for CreateCommand {
    type Answer = Created;

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<Created, QueryFailure> {
        self.create(db, CreateRun::First).await
    }

    async fn run_again(&self, db: &Link, _first: &Created) -> Result<Created, QueryFailure> {
        self.create(db, CreateRun::Again).await
    }

    fn kept(self, answer: &Created, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        (*answer == Created::New).then(|| Arc::new(self) as Arc<dyn KeptChange>)
    }
}

#[async_trait]
impl KeptChange for CreateCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent.id)
    }

    fn is_new_agent(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.agent.prompt.len() + self.turn.bytes()
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if is_taken(db, self.agent.id).await? {
            return Ok(Redone::There);
        }
        match self.create(db, CreateRun::Redone).await? {
            Created::New => Ok(Redone::Again),
            // Another agent has got its key or its conversation, from somebody who did not find it.
            Created::Again(_) | Created::KeyReused | Created::ChatTaken(_) => {
                Err(StoreError::Conflict { head: Sequence::START }.into())
            }
        }
    }
}

/// Creates an agent without a turn.
pub(crate) struct CreateIdleCommand {
    pub(crate) node: i64,
    pub(crate) agent: Agent,
}

impl ChangeCommand for CreateIdleCommand {
    type Answer = ();

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        refuse_taken_id(db, self.agent.id).await?;
        add_agent(db, &self.agent, self.node, None).await?;
        Ok(())
    }

    /// The id of the agent was made for this command: what has it was saved by an earlier run. Looks only once, because
    /// an earlier run could be saved between two looks.
    async fn run_again(&self, db: &Link, (): &()) -> Result<(), QueryFailure> {
        if !is_taken(db, self.agent.id).await? {
            add_agent(db, &self.agent, self.node, None).await?;
        }
        Ok(())
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

#[async_trait]
impl KeptChange for CreateIdleCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent.id)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.agent.prompt.len()
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if is_taken(db, self.agent.id).await? {
            return Ok(Redone::There);
        }
        self.run(db).await?;
        Ok(Redone::Again)
    }
}

/// Marks an agent as deleted, and cancels all open turns.
pub(crate) struct DeleteCommand {
    pub(crate) agent: AgentId,
    pub(crate) at: Timestamp,
    pub(crate) deletion: Deletion,
}

impl ChangeCommand for DeleteCommand {
    type Answer = bool;

    const IS_REPEATED: bool = true;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        let Some(agent) = lock(db, self.agent).await? else { return Ok(false) };
        cancel(db, agent, self.at).await?;
        if self.deletion == Deletion::Purge {
            db.run(MARK_TO_PURGE, &[&agent]).await?;
        }
        let marked = db.run(MARK_DELETED, &[&agent, &self.at.0]).await?;
        if 0 < marked {
            touch(db, agent, self.at).await?;
        }
        Ok(true)
    }

    /// If it was known then and is not now, it is purged already.
    async fn run_again(&self, db: &Link, was_known: &bool) -> Result<bool, QueryFailure> {
        Ok(self.run(db).await? || *was_known)
    }

    fn kept(self, was_known: &bool, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        was_known.then(|| Arc::new(self) as Arc<dyn KeptChange>)
    }
}

#[async_trait]
impl KeptChange for DeleteCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if !self.run(db).await? {
            return Err(StoreError::UnknownAgent(self.agent).into());
        }
        Ok(Redone::There)
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

/// Returns the key of the new agent.
pub(crate) async fn add_agent(
    db: &Link,
    agent: &Agent,
    home: i64,
    owner: Option<i64>,
) -> Result<i64, QueryFailure> {
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
                &home,
                &agent.launched_by.map(|by| by.agent.as_uuid()),
                &agent.launched_by.map(|by| int(by.depth)),
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

/// An id is never used twice.
pub(crate) async fn refuse_taken_id(db: &Link, id: AgentId) -> Result<(), QueryFailure> {
    let taken = is_taken(db, id).await?;
    if taken { Err(StoreError::Conflict { head: Sequence::START }.into()) } else { Ok(()) }
}

pub(crate) async fn is_taken(db: &Link, id: AgentId) -> Result<bool, QueryFailure> {
    let row = db.row(ID_IS_TAKEN, &[&id.as_uuid()]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or(true))
}
