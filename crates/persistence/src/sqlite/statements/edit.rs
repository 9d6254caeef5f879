//! Changes what users may change about an agent at any time.

use rusqlite::{Connection, named_params};
use tokenrail_domain::{AgentEdit, AgentId};
use tokenrail_ports::Edited;

use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::statements::agents;

const EDIT: &str = "UPDATE agents SET name = :name, pinned = :pinned, archived = :archived WHERE id = :id";

pub(crate) struct EditCommand {
    pub(crate) agent: AgentId,
    pub(crate) edit: AgentEdit,
}

impl WriteCommand for EditCommand {
    type Answer = Edited;

    fn run(&self, db: &Connection) -> Result<Edited, WriteFailure> {
        let Some(mut agent) = agents::get(db, self.agent).map_err(WriteFailure::Refused)? else {
            return Ok(Edited::UnknownAgent);
        };
        if agent.deleted_at.is_some() {
            return Ok(Edited::Deleted);
        }
        if !agent.edit(self.edit.clone()) {
            return Ok(Edited::Saved(Box::new(agent)));
        }
        db.prepare_cached(EDIT)?.execute(named_params! {
            ":id": self.agent.to_string(),
            ":name": agent.name,
            ":pinned": agent.pinned,
            ":archived": agent.archived,
        })?;
        Ok(Edited::Saved(Box::new(agent)))
    }
}
