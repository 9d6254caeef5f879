//! Imports that a failover may lose: each step is repeated.

use async_trait::async_trait;
use tokenrail_domain::{AgentId, Event};
use tokenrail_ports::StoreError;

use super::{
    BeginImportCommand, DiscardImportCommand, FinishImportCommand, ImportEventsCommand, ImportTurnsCommand,
    imported,
};
use crate::postgres::command::{ChangeCommand as _, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::int;
use crate::postgres::statements::commands::is_taken;
use crate::postgres::statements::heads::lock;

const HAS_TURN: &str = "SELECT FROM turns WHERE agent = $1 AND number = $2";

#[async_trait]
impl KeptChange for BeginImportCommand {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.agent.prompt.len()
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent.id)
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if is_taken(db, self.agent.id).await? {
            return Ok(Redone::There);
        }
        self.run(db).await?;
        Ok(Redone::Again)
    }
}

#[async_trait]
impl KeptChange for ImportTurnsCommand {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.turns.iter().map(|turn| size_of_val(turn) + turn.bytes()).sum::<usize>()
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    /// All of its turns are there, or none.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let (Some((agent, _)), Some(first)) = (unfinished(db, self.agent).await?, self.turns.first()) else {
            return Ok(Redone::There);
        };
        if db.row(HAS_TURN, &[&agent, &int(first.turn().number.0)]).await?.is_some() {
            return Ok(Redone::There);
        }
        self.run(db).await?;
        Ok(Redone::Again)
    }
}

#[async_trait]
impl KeptChange for ImportEventsCommand {
    fn bytes(&self) -> usize {
        let raw = |event: &Event| event.raw.as_ref().map_or(0, bytes::Bytes::len);
        let in_memory = |event: &Event| size_of::<Event>() + event.body.text_bytes() + raw(event);
        size_of::<Self>() + self.payload.len() + 2 * self.events.iter().map(in_memory).sum::<usize>()
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let (Some((_, head)), Some(last)) = (unfinished(db, self.agent).await?, self.events.last()) else {
            return Ok(Redone::There);
        };
        if last.sequence <= head {
            return Ok(Redone::There);
        }
        self.run(db).await?;
        Ok(Redone::Again)
    }
}

#[async_trait]
impl KeptChange for FinishImportCommand {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.0.prompt.len()
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.0.id)
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        if unfinished(db, self.0.id).await?.is_none() {
            return Ok(Redone::There);
        }
        self.run(db).await?;
        Ok(Redone::Again)
    }
}

#[async_trait]
impl KeptChange for DiscardImportCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.0)
    }

    fn is_of_an_import(&self) -> bool {
        true
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        self.run(db).await?;
        Ok(Redone::There)
    }
}

/// Like [`imported`]. `None` if the import is finished.
async fn unfinished(
    db: &Link,
    id: AgentId,
) -> Result<Option<(i64, tokenrail_domain::Sequence)>, QueryFailure> {
    let found = imported(db, id).await?;
    if found.is_none() && lock(db, id).await?.is_none() {
        return Err(StoreError::UnknownAgent(id).into());
    }
    Ok(found)
}
