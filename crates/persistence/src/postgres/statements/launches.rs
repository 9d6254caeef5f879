//! Agents whose launch waits until a node takes it: their home is [`NodeId::ANY`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokenrail_domain::AgentId;
use tokenrail_ports::{LaunchClaim, LaunchCount};
use tokio_postgres::Row;

use crate::postgres::command::{ChangeCommand, KeptChange, Redone};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::agents;
use crate::postgres::statements::catch_up::{CatchUpTimes, is_awaited};
use crate::postgres::statements::columns::{agent_id_of, column};
use crate::postgres::statements::fence::is_still;
use crate::postgres::statements::heads::{lock, lock_known};
use crate::postgres::statements::ownership::first_epoch;

/// Nobody owns them, so only another claim can have locked them for long. Those that it locks are left to it. `TAKE`
/// looks at the home again, because it may have been taken between the view of this statement and its lock.
const TO_RUN: &str = "
    SELECT heads.agent
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.home = 0 AND heads.owner IS NULL AND agents.type = ANY($1)
        AND EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended' AND stop IS NULL)
    ORDER BY agents.id
    LIMIT $2
    FOR UPDATE OF heads SKIP LOCKED";

/// A node that ends turns needs neither a place nor the type.
const TO_STOP: &str = "
    SELECT heads.agent
    FROM agents
    JOIN heads ON heads.agent = agents.key
    WHERE agents.home = 0 AND heads.owner IS NULL
        AND EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended')
        AND NOT EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended' AND stop IS NULL)
    ORDER BY agents.id
    LIMIT $1
    FOR UPDATE OF heads SKIP LOCKED";

const TAKE: &str = "
    UPDATE agents
    SET home = $1
    WHERE key = ANY($2) AND home = 0
    RETURNING key, id";

/// What is left of the agents here, from a time at which this node was their home, is theirs again.
const KEEP_FOLDERS: &str = "
    DELETE FROM leftovers
    WHERE node = $1 AND agent IN (SELECT id FROM agents WHERE key = ANY($2))";

const OWN: &str = "UPDATE heads SET owner = $1, epoch = greatest(epoch + 1, $3) WHERE agent = ANY($2)";

/// A bucket of `$1` tokens, which are those of a minute. The clock may have been set back.
const COUNT: &str = "
    INSERT INTO launch_rate AS rate (one, tokens, taken, filled_at)
    VALUES (1, $1::double precision - 1, true, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ON CONFLICT (one) DO UPDATE
    SET (tokens, taken, filled_at) = (
        SELECT CASE WHEN 1 <= filled THEN filled - 1 ELSE filled END, 1 <= filled, now
        FROM (
            SELECT least($1, rate.tokens + greatest(0, now - rate.filled_at) * $1 / 60000) AS filled, now
            FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS clock
        ) AS bucket
    )
    RETURNING tokens, taken";

const WAITING: &str = "
    SELECT count(*)
    FROM turns
    WHERE state <> 'ended' AND state = 'queued' AND number = 1 AND stop IS NULL";

const SET_FOLDER: &str = "UPDATE agents SET cwd = $2 WHERE key = $1";

/// Agents that have no home and nothing to do are left alone.
const ANY: &str = "
    SELECT EXISTS (
        SELECT
        FROM turns
        JOIN agents ON agents.key = turns.agent
        WHERE turns.state = 'queued' AND agents.home = 0
    )";

/// Whether any launch waits for a node to take it.
pub(crate) async fn any(db: &Link) -> Result<bool, QueryFailure> {
    let row = db.row(ANY, &[]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Makes a node the home of agents that have none yet.
pub(crate) struct ClaimLaunchesCommand {
    pub(crate) node: JoinedNode,
    pub(crate) claim: LaunchClaim,
    pub(crate) times: CatchUpTimes,
}

impl ChangeCommand for ClaimLaunchesCommand {
    type Answer = Vec<AgentId>;

    async fn run(&self, db: &Link) -> Result<Vec<AgentId>, QueryFailure> {
        // What a lost node takes would have to be ended at once. After a failover, a launch that waits may be one that
        // another node has taken and not repeated yet: no prompt runs twice.
        if !is_still(db, self.node).await? || is_awaited(db, self.times).await? {
            return Ok(Vec::new());
        }
        let LaunchClaim { types, to_run, to_stop } = &self.claim;
        let limit = |limit: &usize| i64::try_from(*limit).unwrap_or(i64::MAX);
        let mut rows = db.rows(TO_STOP, &[&limit(to_stop)]).await?;
        if 0 < *to_run {
            let types: Vec<&[u8]> = types.iter().map(String::as_bytes).collect();
            rows.extend(db.rows(TO_RUN, &[&types, &limit(to_run)]).await?);
        }
        let keys = |rows: &[Row]| rows.iter().map(|row| column::<i64>(row, 0)).collect::<Result<Vec<_>, _>>();
        let found = keys(&rows)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let taken = db.rows(TAKE, &[&self.node.id, &found]).await?;
        let keys = keys(&taken)?;
        db.run(OWN, &[&self.node.id, &keys, &first_epoch(db.timeline())]).await?;
        db.run(KEEP_FOLDERS, &[&self.node.id, &keys]).await?;
        let mut agents = taken.iter().map(|row| agent_id_of(row, 1)).collect::<Result<Vec<_>, _>>()?;
        agents.sort();
        Ok(agents)
    }

    fn kept(self, agents: &Vec<AgentId>, timeline: u32) -> Option<Arc<dyn KeptChange>> {
        let Self { node, .. } = self;
        let kept = || Arc::new(KeptClaim { node: node.id, agents: agents.clone(), timeline });
        (!agents.is_empty()).then(|| kept() as Arc<dyn KeptChange>)
    }
}

/// Launches that a node has taken, for the case that a failover loses that.
struct KeptClaim {
    node: i64,
    agents: Vec<AgentId>,
    timeline: u32,
}

#[async_trait]
impl KeptChange for KeptClaim {
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.agents)
    }

    /// Those that another node has taken meanwhile stay there.
    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        let (mut taken, mut missing) = (0, Vec::new());
        for agent in &self.agents {
            let Some(key) = lock(db, *agent).await? else {
                // The node that has created it has not repeated that yet.
                if !agents::is_purged(db, *agent).await? {
                    missing.push(*agent);
                }
                continue;
            };
            let key = vec![key];
            if db.rows(TAKE, &[&self.node, &key]).await?.is_empty() {
                continue;
            }
            // The same epoch as then.
            taken += db.run(OWN, &[&self.node, &key, &first_epoch(self.timeline)]).await?;
            db.run(KEEP_FOLDERS, &[&self.node, &key]).await?;
        }
        Ok(if missing.is_empty() { Redone::of_rows(taken) } else { Redone::Awaits(missing) })
    }
}

/// Saves the folder that was made for an agent.
pub(crate) struct SetFolderCommand {
    pub(crate) agent: AgentId,
    pub(crate) cwd: String,
}

impl ChangeCommand for SetFolderCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let agent = lock_known(db, self.agent).await?;
        db.run(SET_FOLDER, &[&agent, &self.cwd.as_bytes()]).await?;
        Ok(())
    }

    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    fn kept(self, (): &(), _timeline: u32) -> Option<Arc<dyn KeptChange>> {
        Some(Arc::new(self))
    }
}

#[async_trait]
impl KeptChange for SetFolderCommand {
    fn agent(&self) -> Option<AgentId> {
        Some(self.agent)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.cwd.len()
    }

    async fn redo(&self, db: &Link) -> Result<Redone, QueryFailure> {
        self.run(db).await?;
        Ok(Redone::There)
    }
}

/// Counts a launch of any node.
pub(crate) struct CountLaunchCommand {
    pub(crate) per_minute: u32,
}

impl ChangeCommand for CountLaunchCommand {
    type Answer = LaunchCount;

    /// Counted twice, it only takes the place of one more.
    const IS_REPEATED: bool = true;

    async fn run(&self, db: &Link) -> Result<LaunchCount, QueryFailure> {
        let most = f64::from(self.per_minute.max(1));
        let row = db.row(COUNT, &[&most]).await?.ok_or(QueryFailure::Again)?;
        if column(&row, 1)? {
            return Ok(LaunchCount::Counted);
        }
        let missing = (1.0 - column::<f64>(&row, 0)?).clamp(0.0, 1.0);
        Ok(LaunchCount::TooMany { wait: Duration::from_secs_f64(missing * 60.0 / most) })
    }
}

/// How many first turns are queued.
pub(crate) async fn waiting(db: &Link) -> Result<u64, QueryFailure> {
    let row = db.row(WAITING, &[]).await?;
    Ok(row.as_ref().map(|row| column::<i64>(row, 0)).transpose()?.unwrap_or_default() as u64)
}
