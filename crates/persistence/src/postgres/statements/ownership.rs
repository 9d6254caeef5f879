//! Who may append to a journal: the owner of its agent, as long as a turn is open. Each append names the epoch of the
//! ownership.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::AgentId;
use tokenrail_ports::Epoch;

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::columns::{column, epoch_of};
use crate::postgres::statements::fence::is_still;
use crate::postgres::statements::heads::{lock, lock_known};

/// The owner, whether the agent is at home at node `$2`, and whether that node has not joined again since its `$3`th
/// join.
const OWNER: &str = "
    SELECT heads.owner, heads.epoch, coalesce(agents.home, $2) = $2,
        EXISTS (SELECT FROM nodes WHERE id = $2 AND incarnation = $3 AND state = 'alive')
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = $1";

const CLAIM: &str = "
    UPDATE heads
    SET owner = $2, epoch = greatest(heads.epoch + 1, $3)
    FROM agents
    WHERE agents.id = $1 AND heads.agent = agents.key AND heads.owner IS NULL AND coalesce(agents.home, $2) = $2
    RETURNING heads.epoch";

/// A server can start a turn only with the current epoch, so it is the last owner.
const KEEP: &str = "UPDATE heads SET owner = $2 WHERE agent = $1";

const RELEASE: &str = "
    UPDATE heads
    SET owner = NULL
    WHERE agent = $1 AND NOT EXISTS (SELECT FROM turns WHERE agent = $1 AND state <> 'ended')";

const RAISE: &str = "UPDATE heads SET owner = $2, epoch = $3 WHERE agent = $1 AND epoch < $3";

/// The statements of [`keep`] and [`release`].
pub(crate) const OF_AN_APPEND: [&str; 2] = [KEEP, RELEASE];

/// The lowest epoch of a new ownership. A failover may lose the newest ownerships, whose numbers were given to their
/// owners. So each timeline has numbers of its own.
pub(crate) fn first_epoch(timeline: u32) -> i64 {
    i64::from(timeline.saturating_sub(1).min(i32::MAX as u32)) << 32
}

/// Who owns an agent, as seen by a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    Mine(Epoch),
    /// This node may become the owner.
    Nobodys,
    /// Another node's, or this node is fenced, or the agent is unknown or purged.
    Others,
}

pub(crate) async fn of(db: &Link, agent: AgentId, node: JoinedNode) -> Result<Ownership, QueryFailure> {
    let JoinedNode { id: node, incarnation, .. } = node;
    let row = db.row(OWNER, &[&agent.as_uuid(), &node, &incarnation]).await?;
    let Some(row) = row else { return Ok(Ownership::Others) };
    if !column::<bool>(&row, 3)? {
        return Ok(Ownership::Others);
    }
    Ok(match column::<Option<i64>>(&row, 0)? {
        Some(owner) if owner == node => Ownership::Mine(epoch_of(&row, 1)?),
        None if column(&row, 2)? => Ownership::Nobodys,
        Some(_) | None => Ownership::Others,
    })
}

/// Makes this node the owner of an agent that has none.
pub(crate) struct ClaimCommand {
    pub(crate) node: JoinedNode,
    pub(crate) agent: AgentId,
}

impl ChangeCommand for ClaimCommand {
    type Answer = Option<Epoch>;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<Option<Epoch>, QueryFailure> {
        if !is_still(db, self.node).await? {
            return Ok(None);
        }
        let (agent, first) = (self.agent.as_uuid(), first_epoch(db.timeline()));
        if let Some(row) = db.row(CLAIM, &[&agent, &self.node.id, &first]).await? {
            return Ok(Some(epoch_of(&row, 0)?));
        }
        let mut found = of(db, self.agent, self.node).await?;
        if found == Ownership::Others {
            // A takeover by this node may still be committing, after its answer was lost. Its lock ends with it.
            lock(db, self.agent).await?;
            found = of(db, self.agent, self.node).await?;
        }
        match found {
            Ownership::Mine(epoch) => Ok(Some(epoch)),
            Ownership::Others => Ok(None),
            // It was released meanwhile.
            Ownership::Nobodys => Err(QueryFailure::Again),
        }
    }

    fn kept(self, epoch: &Option<Epoch>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Self { node, agent } = self;
        epoch.map(|epoch| Arc::new(KeptOwnership { node: node.id, agent, epoch }) as Arc<dyn KeptChange>)
    }
}

/// An ownership that this node was given.
pub(crate) struct KeptOwnership {
    pub(crate) node: i64,
    pub(crate) agent: AgentId,
    pub(crate) epoch: Epoch,
}

#[async_trait]
impl KeptChange for KeptOwnership {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        raise(db, agent, self.node, self.epoch).await
    }
}

/// Makes this node the owner with this epoch, unless the agent has had a higher one since. It is locked.
pub(crate) async fn raise(db: &Link, agent: i64, node: i64, epoch: Epoch) -> Result<Redone, QueryFailure> {
    Ok(Redone::of_rows(db.run(RAISE, &[&agent, &node, &(epoch.0 as i64)]).await?))
}

/// At the start of a turn: this node stays the owner. The agent is locked.
pub(crate) async fn keep(db: &Link, agent: i64, node: i64) -> Result<(), QueryFailure> {
    db.run(KEEP, &[&agent, &node]).await?;
    Ok(())
}

/// At the end of a turn: if no other turn is open, nobody owns the agent any more. It is locked.
pub(crate) async fn release(db: &Link, agent: i64) -> Result<(), QueryFailure> {
    db.run(RELEASE, &[&agent]).await?;
    Ok(())
}
