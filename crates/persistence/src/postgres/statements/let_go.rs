//! Agents whose home is taken away: any node may take their next turn.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::AgentId;
use tokenrail_ports::{Epoch, StoreError};

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::catch_up::{CatchUpTimes, is_awaited};
use crate::postgres::statements::columns::{column, epoch_of};
use crate::postgres::statements::fence::is_still;
use crate::postgres::statements::heads::{lock, lock_known};
use crate::postgres::statements::ownership::first_epoch;
use crate::postgres::statements::takeover::STILL_LOST;

const HOME: &str = "
    SELECT agents.home, coalesce(heads.owner = $2, false)
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.id = $1";

/// `$2` is the home as it was read before the agent was locked. `$4` says whether this node, `$3`, may do it also if
/// nobody owns the agent.
const LET_GO: &str = "
    UPDATE agents
    SET home = 0, cwd = CASE WHEN copy IS NULL THEN ''::bytea ELSE cwd END
    FROM heads
    WHERE agents.key = $1 AND heads.agent = agents.key AND agents.home = $2 AND NOT heads.running
        AND (heads.owner = $3 OR heads.owner IS NULL AND $4) AND agents.deleted_at IS NULL
        AND agents.copy IS DISTINCT FROM 'file'";

const OWN_NO_MORE: &str = "
    UPDATE heads
    SET owner = NULL, epoch = greatest(epoch + 1, $2)
    WHERE agent = $1
    RETURNING epoch";

/// The folder of the agent is still at its former home, and it gets another one where its next turn runs. A copy has no
/// folder.
const LEAVE_FOLDER: &str = "
    INSERT INTO leftovers (node, agent)
    SELECT $2::bigint, id
    FROM agents
    WHERE key = $1 AND $2::bigint <> 0 AND copy IS NULL
        AND NOT EXISTS (SELECT FROM nodes WHERE nodes.id = $2 AND nodes.state = 'gone')
    ON CONFLICT DO NOTHING";

/// Unless the agent has had a higher epoch since.
const LET_GO_AGAIN: &str = "
    UPDATE agents
    SET home = 0, cwd = CASE WHEN copy IS NULL THEN ''::bytea ELSE cwd END
    FROM heads
    WHERE agents.key = $1 AND heads.agent = agents.key AND agents.home = $2 AND heads.epoch < $3";

const RAISE_TO: &str = "UPDATE heads SET owner = NULL, epoch = $2 WHERE agent = $1 AND epoch < $2";

/// Those that another transaction has locked are left to the next call.
const LET_ALL_GO: &str = "
    WITH found AS (
        SELECT heads.agent
        FROM agents
        JOIN heads ON heads.agent = agents.key
        WHERE agents.home = $1 AND NOT heads.running AND coalesce(heads.owner, $1) = $1
            AND agents.deleted_at IS NULL
            AND CASE
                WHEN agents.copy IS NULL THEN agents.type = ANY($2)
                ELSE agents.copy = 'replay'
                    AND EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended')
            END
        ORDER BY agents.key
        LIMIT $3
        FOR UPDATE OF heads SKIP LOCKED
    ), gone AS (
        UPDATE agents
        SET home = 0, cwd = CASE WHEN copy IS NULL THEN ''::bytea ELSE cwd END
        FROM found
        WHERE agents.key = found.agent AND agents.home = $1
        RETURNING agents.key, agents.id, agents.copy
    ), folders AS (
        INSERT INTO leftovers (node, agent)
        SELECT $1::bigint, id
        FROM gone
        WHERE copy IS NULL
        ON CONFLICT DO NOTHING
    )
    UPDATE heads
    SET owner = NULL, epoch = greatest(epoch + 1, $4)
    FROM gone
    WHERE heads.agent = gone.key";

/// Takes the home of one agent away. Locks the lost node, and then the agent, as a takeover does.
pub(crate) struct LetGoCommand {
    pub(crate) node: JoinedNode,
    pub(crate) agent: AgentId,
    pub(crate) times: CatchUpTimes,
}

/// The home that an agent had, and its epoch since it has none.
pub(crate) type FormerHome = (i64, Epoch);

impl ChangeCommand for LetGoCommand {
    type Answer = Option<FormerHome>;

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn run(&self, db: &Link) -> Result<Option<FormerHome>, QueryFailure> {
        let me = self.node.id;
        // After a failover, its home may be back, and may not have repeated yet what it has begun.
        if is_awaited(db, self.times).await? {
            return Err(StoreError::Busy.into());
        }
        if !is_still(db, self.node).await? {
            return Ok(None);
        }
        let Some(row) = db.row(HOME, &[&self.agent.as_uuid(), &me]).await? else { return Ok(None) };
        let Some(home) = column::<Option<i64>>(&row, 0)? else { return Ok(None) };
        let is_owned = column::<bool>(&row, 1)?;
        let is_free = home == me || !is_owned && db.row(STILL_LOST, &[&home]).await?.is_some();
        let Some(agent) = lock(db, self.agent).await? else { return Ok(None) };
        if db.run(LET_GO, &[&agent, &home, &me, &is_free]).await? == 0 {
            return Ok(None);
        }
        db.run(LEAVE_FOLDER, &[&agent, &home]).await?;
        let row = db.row(OWN_NO_MORE, &[&agent, &first_epoch(db.timeline())]).await?;
        Ok(row.as_ref().map(|row| epoch_of(row, 0)).transpose()?.map(|epoch| (home, epoch)))
    }

    fn kept(self, former: &Option<FormerHome>, _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let agent = self.agent;
        former.map(|(home, epoch)| Arc::new(KeptLetGo { agent, home, epoch }) as Arc<dyn KeptChange>)
    }
}

/// For the case that a failover loses it.
struct KeptLetGo {
    agent: AgentId,
    home: i64,
    epoch: Epoch,
}

#[async_trait]
impl KeptChange for KeptLetGo {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        let epoch = self.epoch.0 as i64;
        let gone = db.run(LET_GO_AGAIN, &[&agent, &self.home, &epoch]).await?;
        if 0 < gone {
            db.run(RAISE_TO, &[&agent, &epoch]).await?;
            db.run(LEAVE_FOLDER, &[&agent, &self.home]).await?;
        }
        Ok(Redone::of_rows(gone))
    }
}

/// The same for agents that are at home at this node.
pub(crate) struct LetAllGoCommand {
    pub(crate) node: JoinedNode,
    pub(crate) types: Vec<String>,
    pub(crate) limit: usize,
    pub(crate) times: CatchUpTimes,
}

impl ChangeCommand for LetAllGoCommand {
    type Answer = usize;

    async fn run(&self, db: &Link) -> Result<usize, QueryFailure> {
        // After a failover, this node may not have repeated yet what it has done with them.
        if is_awaited(db, self.times).await? {
            return Err(StoreError::Busy.into());
        }
        if !is_still(db, self.node).await? {
            return Ok(0);
        }
        let types: Vec<&[u8]> = self.types.iter().map(String::as_bytes).collect();
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let gone = db.run(LET_ALL_GO, &[&self.node.id, &types, &limit, &first_epoch(db.timeline())]).await?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }
}
