//! Agents that nobody continues, and how a node takes them over.

use std::sync::Arc;

use tokenrail_domain::AgentId;
use tokenrail_ports::Epoch;

use crate::postgres::command::{ChangeCommand, KeptChange};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::catch_up::{CatchUpTimes, is_awaited};
use crate::postgres::statements::columns::{agent_id_of, column, epoch_of};
use crate::postgres::statements::fence::is_still;
use crate::postgres::statements::heads::lock;
use crate::postgres::statements::list_page::one_more;
use crate::postgres::statements::ownership::{KeptOwnership, first_epoch};
use crate::postgres::statements::rounds::Round;

const ORPHANS: &str = "
    SELECT agents.id
    FROM agents
    JOIN heads ON heads.agent = agents.key
    JOIN nodes ON nodes.id = coalesce(heads.owner, agents.home)
    WHERE agents.key IN (SELECT agent FROM turns WHERE state <> 'ended') AND nodes.state IN ('lost', 'gone')
    ORDER BY agents.id > $2 DESC, agents.id
    LIMIT $1";

/// The node that should continue the open turns.
const RESPONSIBLE: &str = "
    SELECT coalesce(heads.owner, agents.home)
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = $1 AND EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended')";

/// As long as this lock is held, the node cannot join.
pub(crate) const STILL_LOST: &str = "SELECT FROM nodes WHERE id = $1 AND state IN ('lost', 'gone') FOR SHARE";

/// If nothing is known of a failover, nothing was lost. What was queued on the newest timeline has not begun: the
/// server would have the start. A turn that was queued once more has the timeline on which it was queued first.
///
/// An older program saves no timeline. The row of `cluster` was written when the newest failover was noticed, before
/// anything else was. A turn that was queued once more since may have begun before. Its agent has a row in `seen` then.
const MAY_HAVE_BEGUN: &str = "
    SELECT EXISTS (
        SELECT
        FROM agents
        JOIN nodes ON nodes.id = agents.home
        JOIN cluster ON 0 < cluster.timeline_since AND nodes.healed < cluster.timeline
        JOIN turns ON turns.agent = agents.key AND turns.state = 'queued'
        WHERE agents.id = $1 AND nodes.state IN ('lost', 'gone')
            AND CASE
                WHEN turns.queued_on IS NOT NULL THEN turns.queued_on < cluster.timeline
                ELSE age(cluster.xmin) <= age(turns.xmin)
                    OR EXISTS (SELECT FROM seen WHERE seen.agent = agents.key)
            END
    )";

const TAKE: &str =
    "UPDATE heads SET owner = $2, epoch = greatest(epoch + 1, $3) WHERE agent = $1 RETURNING epoch";

/// The agents with open turns that nobody continues.
pub(crate) async fn orphans(db: &Link, limit: usize, round: &Round) -> Result<Vec<AgentId>, QueryFailure> {
    let rows = db.rows(ORPHANS, &[&one_more(limit), &round.after()]).await?;
    let found = rows.iter().map(|row| agent_id_of(row, 0)).collect::<Result<_, _>>()?;
    Ok(round.end(found, limit))
}

/// Whether the agent's home, which is lost, may have begun a turn that waits, as far as the database knows.
pub(crate) async fn may_have_begun(db: &Link, agent: AgentId) -> Result<bool, QueryFailure> {
    let row = db.row(MAY_HAVE_BEGUN, &[&agent.as_uuid()]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Makes a node the owner of an agent that nobody continues.
///
/// Locks the lost node, and then the agent, as a join does. So either the node is back first, and nothing is taken
/// over; or what it owns when it is back does not contain this agent.
pub(crate) struct TakeOverCommand {
    pub(crate) node: JoinedNode,
    pub(crate) agent: AgentId,
    pub(crate) times: CatchUpTimes,
}

impl ChangeCommand for TakeOverCommand {
    type Answer = Option<Epoch>;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<Option<Epoch>, QueryFailure> {
        // After a failover, a node that is back may not have repeated its join yet.
        if !is_still(db, self.node).await? || is_awaited(db, self.times).await? {
            return Ok(None);
        }
        let Some(lost) = responsible(db, self.agent).await? else { return Ok(None) };
        if db.row(STILL_LOST, &[&lost]).await?.is_none() {
            return Ok(None);
        }
        let Some(agent) = lock(db, self.agent).await? else { return Ok(None) };
        match responsible(db, self.agent).await? {
            Some(now) if now == lost => {}
            // Another node was faster, and this one may be lost by now too.
            Some(_) => return Err(QueryFailure::Again),
            None => return Ok(None),
        }
        let row = db.row(TAKE, &[&agent, &self.node.id, &first_epoch(db.timeline())]).await?;
        Ok(row.as_ref().map(|row| epoch_of(row, 0)).transpose()?)
    }

    fn kept(self, epoch: &Option<Epoch>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Self { node, agent, times: _ } = self;
        epoch.map(|epoch| Arc::new(KeptOwnership { node: node.id, agent, epoch }) as Arc<dyn KeptChange>)
    }
}

/// The node that should continue the agent's open turns. `None` if it has none, or if any node may.
async fn responsible(db: &Link, agent: AgentId) -> Result<Option<i64>, QueryFailure> {
    let row = db.row(RESPONSIBLE, &[&agent.as_uuid()]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.flatten())
}
