//! Who may append to a journal. A database in a folder has one node, which owns all agents.

use rusqlite::{Connection, OptionalExtension, named_params};
use tokenrail_domain::AgentId;
use tokenrail_ports::{Epoch, StoreError};

use crate::sqlite::command::{WriteCommand, WriteFailure};
use crate::sqlite::database::reserve::ReserveUse;
use crate::sqlite::error::store_error;
use crate::sqlite::statements::columns::epoch_of;

const EPOCH: &str = "
    SELECT heads.epoch
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = :id";

const JOIN: &str = "
    UPDATE heads
    SET epoch = epoch + 1
    WHERE agent IN (SELECT agent FROM turns WHERE state <> 'ended')";

pub(crate) fn epoch(db: &Connection, agent: AgentId) -> Result<Option<Epoch>, StoreError> {
    let mut statement = db.prepare_cached(EPOCH).map_err(store_error)?;
    let found = statement.query_row(named_params! { ":id": agent.to_string() }, |row| epoch_of(row, 0));
    found.optional().map_err(store_error)
}

/// Raises the epoch of every agent with an open turn.
pub(crate) struct JoinCommand;

impl WriteCommand for JoinCommand {
    type Answer = ();

    fn run(&self, db: &Connection) -> Result<(), WriteFailure> {
        db.execute(JOIN, [])?;
        Ok(())
    }

    /// A start writes little, and the server then serves what there is.
    fn reserve_use(&self) -> ReserveUse {
        ReserveUse::Ends
    }
}
