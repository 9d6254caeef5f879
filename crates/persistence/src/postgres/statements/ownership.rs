//! Who may append to a journal: the owner of its agent, as long as a turn is open. Each append names the epoch of the
//! ownership.

use tokenrail_domain::AgentId;
use tokenrail_ports::Epoch;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{column, epoch_of};

/// This server in `heads.owner`. There is one node.
pub(crate) const NODE: i64 = 1;

const OWNER: &str = "
    SELECT owner, epoch
    FROM heads
    WHERE agent = (SELECT key FROM agents WHERE id = $1)";

const CLAIM: &str = "
    UPDATE heads
    SET owner = $2, epoch = epoch + 1
    WHERE agent = (SELECT key FROM agents WHERE id = $1) AND owner IS NULL
    RETURNING epoch";

/// The only statement besides `MOVE_HEADS` that locks several rows of `heads`.
const JOIN: &str = "UPDATE heads SET epoch = epoch + 1 WHERE owner = $1";

/// A server can start a turn only with the current epoch, so it is the last owner.
const KEEP: &str = "UPDATE heads SET owner = $2 WHERE agent = $1";

const RELEASE: &str = "
    UPDATE heads
    SET owner = NULL
    WHERE agent = $1 AND NOT EXISTS (SELECT FROM turns WHERE agent = $1 AND state <> 'ended')";

/// The statements of [`keep`] and [`release`].
pub(crate) const OF_AN_APPEND: [&str; 2] = [KEEP, RELEASE];

/// Who owns an agent, as seen by this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    Mine(Epoch),
    Nobodys,
    /// Another node's, or the agent is unknown or purged.
    Others,
}

pub(crate) async fn of(db: &Link, agent: AgentId) -> Result<Ownership, QueryFailure> {
    let Some(row) = db.row(OWNER, &[&agent.as_uuid()]).await? else { return Ok(Ownership::Others) };
    Ok(match column::<Option<i64>>(&row, 0)? {
        Some(NODE) => Ownership::Mine(epoch_of(&row, 1)?),
        Some(_) => Ownership::Others,
        None => Ownership::Nobodys,
    })
}

/// Makes this node the owner of an agent that has none.
pub(crate) struct ClaimCommand {
    pub(crate) agent: AgentId,
}

impl ChangeCommand for ClaimCommand {
    type Answer = Option<Epoch>;

    async fn run(&self, db: &Link) -> Result<Option<Epoch>, QueryFailure> {
        if let Some(row) = db.row(CLAIM, &[&self.agent.as_uuid(), &NODE]).await? {
            return Ok(Some(epoch_of(&row, 0)?));
        }
        match of(db, self.agent).await? {
            Ownership::Mine(epoch) => Ok(Some(epoch)),
            Ownership::Others => Ok(None),
            // It was released meanwhile.
            Ownership::Nobodys => Err(QueryFailure::Again),
        }
    }
}

/// Raises the epoch of everything that this node owns.
pub(crate) struct JoinCommand;

impl ChangeCommand for JoinCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        db.run(JOIN, &[&NODE]).await?;
        Ok(())
    }
}

/// At the start of a turn: this node stays the owner. The agent is locked.
pub(crate) async fn keep(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(KEEP, &[&agent, &NODE]).await?;
    Ok(())
}

/// At the end of a turn: if no other turn is open, nobody owns the agent any more. It is locked.
pub(crate) async fn release(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(RELEASE, &[&agent]).await?;
    Ok(())
}
