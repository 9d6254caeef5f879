//! Changes what users may change about an agent at any time.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{Agent, AgentEdit, AgentId};
use tokenrail_ports::{Edited, StoreError};

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::agents;
use crate::postgres::statements::columns::bytes_of;
use crate::postgres::statements::heads::lock;

const EDIT: &str = "UPDATE agents SET name = $2, pinned = $3, archived = $4 WHERE id = $1";

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

    async fn save(&self, db: &Link, agent: AgentId) -> Result<(), QueryFailure> {
        let Self { name, pinned, archived } = self;
        db.run(EDIT, &[&agent.as_uuid(), &bytes_of(name.as_deref()), pinned, archived]).await?;
        Ok(())
    }
}

pub(crate) struct EditCommand {
    pub(crate) agent: AgentId,
    pub(crate) edit: AgentEdit,
}

/// The outcome of an edit, and what it has replaced if it has changed anything.
pub(crate) struct SavedEdit {
    pub(crate) edited: Edited,
    before: Option<Listing>,
}

impl From<Edited> for SavedEdit {
    fn from(edited: Edited) -> Self {
        Self { edited, before: None }
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
        Listing::of(&agent).save(db, self.agent).await?;
        Ok(SavedEdit { edited: Edited::Saved(Box::new(agent)), before: Some(before) })
    }

    /// If the first run was saved, only that one knows what was there before.
    async fn run_again(&self, db: &Link, first: &SavedEdit) -> Result<SavedEdit, QueryFailure> {
        let SavedEdit { edited, before } = self.run(db).await?;
        Ok(SavedEdit { edited, before: before.or_else(|| first.before.clone()) })
    }

    fn kept(self, saved: &SavedEdit, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let (Edited::Saved(agent), Some(before)) = (&saved.edited, &saved.before) else { return None };
        let (before, after) = (before.clone(), Listing::of(agent));
        Some(Arc::new(KeptEdit { agent: self.agent, before, after }))
    }
}

/// An edit, for the case that a failover loses it.
struct KeptEdit {
    agent: AgentId,
    before: Listing,
    after: Listing,
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

    /// Only what is as it was before: anything else was changed later. If several nodes have edited the same agent in
    /// the lost moments, one of the edits may stay lost.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        lock(db, self.agent).await?;
        let agent = agents::get(db, self.agent).await?.ok_or(StoreError::UnknownAgent(self.agent))?;
        let (now, Self { before, after, .. }) = (Listing::of(&agent), self);
        let again = Listing {
            name: if now.name == before.name { after.name.clone() } else { now.name.clone() },
            pinned: if now.pinned == before.pinned { after.pinned } else { now.pinned },
            archived: if now.archived == before.archived { after.archived } else { now.archived },
        };
        if again == now || agent.deleted_at.is_some() {
            return Ok(Redone::There);
        }
        again.save(db, self.agent).await?;
        Ok(Redone::Again)
    }
}
