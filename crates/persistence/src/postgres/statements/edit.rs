//! Changes what users may change about an agent at any time.

use tokenrail_domain::{AgentEdit, AgentId};
use tokenrail_ports::Edited;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::agents;
use crate::postgres::statements::columns::bytes_of;
use crate::postgres::statements::heads::lock;

const EDIT: &str = "UPDATE agents SET name = $2, pinned = $3, archived = $4 WHERE id = $1";

pub(crate) struct EditCommand {
    pub(crate) agent: AgentId,
    pub(crate) edit: AgentEdit,
}

impl ChangeCommand for EditCommand {
    type Answer = Edited;

    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<Edited, QueryFailure> {
        lock(db, self.agent).await?;
        let Some(mut agent) = agents::get(db, self.agent).await? else { return Ok(Edited::UnknownAgent) };
        if agent.deleted_at.is_some() {
            return Ok(Edited::Deleted);
        }
        if !agent.edit(self.edit.clone()) {
            return Ok(Edited::Saved(Box::new(agent)));
        }
        let id = self.agent.as_uuid();
        db.run(EDIT, &[&id, &bytes_of(agent.name.as_deref()), &agent.pinned, &agent.archived]).await?;
        Ok(Edited::Saved(Box::new(agent)))
    }
}
