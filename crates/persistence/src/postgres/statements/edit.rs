//! Changes what users may change about an agent at any time.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentEdit, AgentId, Sequence};
use tokenrail_ports::{Edited, StoreError};

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::agents;
use crate::postgres::statements::columns::{bytes_of, column};
use crate::postgres::statements::heads::lock;
use crate::postgres::statements::ownership::first_epoch;

/// Edits are numbered. Each timeline has numbers of its own, as epochs have.
const EDIT: &str = "
    UPDATE agents
    SET name = $2, pinned = $3, archived = $4,
        edits_before = CASE WHEN edits < $5 THEN edits ELSE edits_before END,
        edits = greatest(edits + 1, $5)
    WHERE id = $1
    RETURNING edits, pg_current_xact_id()::text";

/// After a crash, a transaction whose number was lost would be in the future, which is an error.
const NEWEST: &str = "
    SELECT edits, edits_before,
        coalesce(CASE WHEN run < pg_snapshot_xmax(pg_current_snapshot())
            THEN pg_xact_status(run) = 'committed' END, false)
    FROM agents, (SELECT $2::text::xid8 AS run) AS saved
    WHERE id = $1";

/// What users may change about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listing {
    name: Option<String>,
    pinned: bool,
    archived: bool,
}

impl Listing {
    fn of(agent: &Agent) -> Self {
        let Agent { name, pinned, archived, .. } = agent;
        Self { name: name.clone(), pinned: *pinned, archived: *archived }
    }

    async fn save(&self, db: &Link, agent: AgentId) -> Result<EditRun, QueryFailure> {
        let Self { name, pinned, archived } = self;
        let timeline = db.timeline();
        let (name, first) = (bytes_of(name.as_deref()), first_epoch(timeline));
        let row = db.row(EDIT, &[&agent.as_uuid(), &name, pinned, archived, &first]).await?;
        let row = row.ok_or(StoreError::UnknownAgent(agent))?;
        Ok(EditRun { number: column(&row, 0)?, transaction: column(&row, 1)?, timeline })
    }
}

/// A run of an edit, which may not have been saved.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EditRun {
    number: i64,
    transaction: String,
    timeline: u32,
}

/// What the database knows of a run of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunFate {
    Saved,
    NotSaved,
    /// There were several failovers since, so nobody knows any more how many edits its timeline had.
    Unknown,
}

/// Why it stays unknown whether an edit was saved.
#[derive(Debug, thiserror::Error)]
#[error("the database has failed over several times, so it is unknown whether this edit was saved")]
struct EditsForgotten;

impl EditRun {
    /// What became of it, no matter what was edited later. The agent is locked, so the run is over.
    ///
    /// If it was not saved, another edit may have its number. That edit came after the end of the run. So a server that
    /// has it knows the transaction of the run, and has given the number of that transaction to no other one: neither
    /// after a crash nor after a failover.
    async fn fate(&self, db: &Link, agent: AgentId) -> Result<RunFate, QueryFailure> {
        let Some(row) = db.row(NEWEST, &[&agent.as_uuid(), &self.transaction]).await? else {
            return Ok(RunFate::NotSaved);
        };
        let (newest, before) = (column::<i64>(&row, 0)?, column::<i64>(&row, 1)?);
        let next_timeline = first_epoch(self.timeline.max(1).saturating_add(1));
        let reached = if newest < next_timeline { newest } else { before };
        let is_committed = column::<bool>(&row, 2)?;
        Ok(if reached < self.number || !is_committed {
            RunFate::NotSaved
        } else if reached < next_timeline {
            RunFate::Saved
        } else {
            RunFate::Unknown
        })
    }
}

pub(crate) struct EditCommand {
    pub(crate) agent: AgentId,
    pub(crate) edit: AgentEdit,
}

/// The outcome of an edit, and what it has changed, if anything.
pub(crate) struct SavedEdit {
    pub(crate) edited: Edited,
    change: Option<Change>,
}

#[derive(Clone)]
struct Change {
    before: Listing,
    after: Listing,
    run: EditRun,
}

impl From<Edited> for SavedEdit {
    fn from(edited: Edited) -> Self {
        Self { edited, change: None }
    }
}

impl ChangeCommand for EditCommand {
    type Answer = SavedEdit;

    const IS_REPEATED: bool = true;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<SavedEdit, QueryFailure> {
        lock(db, self.agent).await?;
        let Some(mut agent) = agents::get(db, self.agent).await? else {
            return Ok(Edited::UnknownAgent.into());
        };
        if agent.deleted_at.is_some() {
            return Ok(Edited::Deleted.into());
        }
        let before = Listing::of(&agent);
        if !agent.edit(self.edit.clone()) {
            return Ok(Edited::Saved(Box::new(agent)).into());
        }
        let after = Listing::of(&agent);
        let run = after.save(db, self.agent).await?;
        Ok(SavedEdit { edited: Edited::Saved(Box::new(agent)), change: Some(Change { before, after, run }) })
    }

    /// If the first run was saved, later edits stay.
    async fn run_again(&self, db: &Link, first: &SavedEdit) -> Result<SavedEdit, QueryFailure> {
        lock(db, self.agent).await?;
        let fate = match &first.change {
            Some(change) => change.run.fate(db, self.agent).await?,
            None => RunFate::NotSaved,
        };
        match fate {
            RunFate::Saved => {
                if let Some(agent) = agents::get(db, self.agent).await? {
                    let edited = Edited::Saved(Box::new(agent));
                    return Ok(SavedEdit { edited, change: first.change.clone() });
                }
            }
            RunFate::NotSaved => {}
            RunFate::Unknown => return Err(StoreError::OutcomeUnknown(Box::new(EditsForgotten)).into()),
        }
        self.run(db).await
    }

    fn kept(self, saved: &SavedEdit, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Change { before, after, run } = saved.change.clone()?;
        Some(Arc::new(KeptEdit { agent: self.agent, before, after, newest: Mutex::new(run) }))
    }
}

/// An edit, for the case that a failover loses it.
struct KeptEdit {
    agent: AgentId,
    before: Listing,
    after: Listing,
    /// How it was saved last.
    newest: Mutex<EditRun>,
}

#[async_trait]
impl KeptChange for KeptEdit {
    fn bytes(&self) -> usize {
        let name = |listing: &Listing| listing.name.as_ref().map_or(0, String::len);
        size_of::<Self>() + name(&self.before) + name(&self.after)
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    /// If it is there, what differs was edited later. If it is lost, only what is as it was before it is changed again.
    /// If several nodes have edited the same agent in the lost moments, one of the edits may stay lost.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        lock(db, self.agent).await?;
        let agent = agents::get(db, self.agent).await?.ok_or(StoreError::UnknownAgent(self.agent))?;
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fate = newest.fate(db, self.agent).await?;
        if fate == RunFate::Saved {
            return Ok(Redone::There);
        }
        let (now, Self { before, after, .. }) = (Listing::of(&agent), self);
        let again = Listing {
            name: if now.name == before.name { after.name.clone() } else { now.name.clone() },
            pinned: if now.pinned == before.pinned { after.pinned } else { now.pinned },
            archived: if now.archived == before.archived { after.archived } else { now.archived },
        };
        if again == now || agent.deleted_at.is_some() {
            return Ok(Redone::There);
        }
        // Either it is lost, or somebody has undone it.
        if fate == RunFate::Unknown {
            return Err(StoreError::Conflict { head: Sequence::START }.into());
        }
        let run = again.save(db, self.agent).await?;
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = run;
        Ok(Redone::Again)
    }
}
