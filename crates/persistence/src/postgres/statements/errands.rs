//! What other nodes have saved and a node must carry out, and who follows what where.

use tokenrail_domain::AgentId;
use tokenrail_ports::{Errands, OpenErrand, StoreError};
use tokio_postgres::Row;

use crate::postgres::command::ChangeCommand;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::catch_up::{CatchUpTimes, is_awaited};
use crate::postgres::statements::columns::{agent_id_of, column};
use crate::postgres::statements::list_page::one_more;
use crate::postgres::statements::rounds::Round;

/// Each of the first two conditions is that of a partial index. The third one finds what this node has taken over: a
/// takeover may have been saved although its answer was lost.
///
/// Agents with a turn to be stopped are first, but if there are others, these get half of the places.
const TURNS: &str = "
    SELECT id, stop, stop_running, place < count
    FROM (
        SELECT id, stop, stop_running,
            row_number() OVER (
                PARTITION BY stop ORDER BY id > CASE WHEN stop THEN $3::uuid ELSE $4::uuid END DESC, id) AS place,
            count(*) OVER (PARTITION BY stop) AS count
        FROM (
            SELECT agents.id, bool_or(turns.stop IS NOT NULL) AS stop,
                bool_or(turns.stop IS NOT NULL AND turns.state = 'running') AS stop_running
            FROM turns
            JOIN agents ON agents.key = turns.agent
            JOIN heads ON heads.agent = turns.agent
            WHERE turns.state <> 'ended' AND coalesce(heads.owner, agents.home, $1) = $1
                AND turns.agent IN (
                    SELECT agent FROM turns WHERE state = 'queued'
                    UNION
                    SELECT agent FROM turns WHERE state <> 'ended' AND stop IS NOT NULL
                    UNION
                    SELECT heads.agent
                    FROM heads
                    JOIN agents ON agents.key = heads.agent
                    WHERE heads.owner = $1 AND agents.home <> $1
                )
            GROUP BY agents.id
        ) AS open
    ) AS placed
    ORDER BY stop AND place <= ($2::bigint + 1) / 2 DESC, stop, place
    LIMIT $2";

/// An agent that is being imported is marked too, and still in use. The agents of a lost node are purged by any node,
/// but only after their turns have been ended, and not right after a failover: such a node may be back.
const TO_PURGE: &str = "
    SELECT agents.id
    FROM agents
    LEFT JOIN nodes ON nodes.id = agents.home
    WHERE agents.to_purge AND agents.copy IS DISTINCT FROM 'file'
        AND (
            coalesce(agents.home, $1) = $1
            OR (agents.home = 0 OR NOT $4 AND nodes.state IN ('lost', 'gone'))
                AND NOT EXISTS (SELECT FROM turns WHERE agent = agents.key AND state <> 'ended')
        )
    ORDER BY agents.id > $3 DESC, agents.id
    LIMIT $2";

const LEFTOVERS: &str =
    "SELECT agent FROM leftovers WHERE node = $1 ORDER BY agent > $3 DESC, agent LIMIT $2";

/// An imported agent has no files, and neither has one that no node has taken yet. A node that was taken out for good
/// removes none.
const LEAVE_FILES: &str = "
    INSERT INTO leftovers (node, agent)
    SELECT home, id
    FROM agents
    WHERE key = $1 AND home NOT IN (0, $2) AND copy IS DISTINCT FROM 'file'
        AND NOT EXISTS (SELECT FROM nodes WHERE nodes.id = agents.home AND nodes.state = 'gone')
    ON CONFLICT DO NOTHING";

const FORGET_LEFTOVER: &str = "DELETE FROM leftovers WHERE node = $1 AND agent = $2";

const WATCH: &str = "
    INSERT INTO watchers (agent, node)
    SELECT key, $2::bigint FROM agents WHERE id = $1
    ON CONFLICT DO NOTHING";

const WATCH_NO_MORE: &str = "
    DELETE FROM watchers
    WHERE agent = (SELECT key FROM agents WHERE id = $1) AND node = $2";

const IS_WATCHED_ELSEWHERE: &str = "
    SELECT EXISTS (
        SELECT
        FROM watchers
        JOIN nodes ON nodes.id = watchers.node
        WHERE watchers.agent = (SELECT key FROM agents WHERE id = $1) AND watchers.node <> $2
            AND nodes.state = 'alive'
    )";

/// The main statement sees none of the rows that the others add.
const TAKE_WATCHED: &str = "
    WITH taken AS (
        DELETE FROM watchers
        USING nodes
        WHERE nodes.id = watchers.node AND nodes.state IN ('lost', 'gone')
        RETURNING watchers.agent
    ), added AS (
        INSERT INTO watchers (agent, node)
        SELECT DISTINCT agent, $1::bigint FROM taken
        ON CONFLICT DO NOTHING
    )
    SELECT id
    FROM agents
    WHERE key IN (SELECT agent FROM taken UNION SELECT agent FROM watchers WHERE node = $1)
    ORDER BY id";

/// How far the looks at the errands have come.
#[derive(Default)]
pub(crate) struct ErrandRounds {
    stops: Round,
    turns: Round,
    purges: Round,
    leftovers: Round,
}

/// What this node must carry out: at most `limit` of each kind. `db` is in a transaction that sees one state.
pub(crate) async fn errands(
    db: &Link,
    node: i64,
    limit: usize,
    rounds: &ErrandRounds,
    times: CatchUpTimes,
) -> Result<Errands, QueryFailure> {
    let (one_more, at_most) = (one_more(limit), i64::try_from(limit).unwrap_or(i64::MAX));
    let ErrandRounds { stops, turns, purges, leftovers } = rounds;
    let open = db.rows(TURNS, &[&node, &at_most, &stops.after(), &turns.after()]).await?;
    let awaited = is_awaited(db, times).await?;
    let to_purge = db.rows(TO_PURGE, &[&node, &one_more, &purges.after(), &awaited]).await?;
    let left = db.rows(LEFTOVERS, &[&node, &one_more, &leftovers.after()]).await?;
    let agents = |rows: &[Row]| rows.iter().map(|row| agent_id_of(row, 0)).collect::<Result<Vec<_>, _>>();
    let (to_purge, left) = (agents(&to_purge)?, agents(&left)?);
    Ok(Errands {
        turns: open_errands(&open, stops, turns)?,
        to_purge: purges.end(to_purge, limit),
        leftovers: leftovers.end(left, limit),
    })
}

fn open_errands(rows: &[Row], stops: &Round, turns: &Round) -> Result<Vec<OpenErrand>, StoreError> {
    let mut errands = Vec::with_capacity(rows.len());
    for row in rows {
        let errand =
            OpenErrand { agent: agent_id_of(row, 0)?, stop: column(row, 1)?, stop_running: column(row, 2)? };
        // The last row of a kind counts.
        let is_cut: bool = column(row, 3)?;
        let round = if errand.stop { stops } else { turns };
        round.go_on_after(is_cut.then_some(errand.agent));
        errands.push(errand);
    }
    errands.sort_unstable_by_key(|errand| (!errand.stop, errand.agent));
    Ok(errands)
}

/// Tells the home of an agent to remove the agent's files, if the home is another node. The agent is locked.
pub(crate) async fn leave_files(db: &Link, agent: i64, node: i64) -> Result<(), QueryFailure> {
    db.run(LEAVE_FILES, &[&agent, &node]).await?;
    Ok(())
}

/// Says that a node has removed the files of an agent.
pub(crate) struct ForgetLeftoverCommand {
    pub(crate) node: i64,
    pub(crate) agent: AgentId,
}

impl ChangeCommand for ForgetLeftoverCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        db.run(FORGET_LEFTOVER, &[&self.node, &self.agent.as_uuid()]).await?;
        Ok(())
    }
}

/// Saves whether an agent is followed at a node.
pub(crate) struct WatchCommand {
    pub(crate) node: i64,
    pub(crate) agent: AgentId,
    pub(crate) watched: bool,
}

impl ChangeCommand for WatchCommand {
    type Answer = ();

    async fn run(&self, db: &Link) -> Result<(), QueryFailure> {
        let statement = if self.watched { WATCH } else { WATCH_NO_MORE };
        db.run(statement, &[&self.agent.as_uuid(), &self.node]).await?;
        Ok(())
    }
}

/// Makes what lost nodes have saved as followed this node's.
pub(crate) struct TakeWatchedCommand {
    pub(crate) node: i64,
}

impl ChangeCommand for TakeWatchedCommand {
    type Answer = Vec<AgentId>;

    async fn run(&self, db: &Link) -> Result<Vec<AgentId>, QueryFailure> {
        let rows = db.rows(TAKE_WATCHED, &[&self.node]).await?;
        Ok(rows.iter().map(|row| agent_id_of(row, 0)).collect::<Result<_, _>>()?)
    }
}

/// Whether the agent is followed at another node that is alive.
pub(crate) async fn is_watched_elsewhere(db: &Link, agent: AgentId, node: i64) -> Result<bool, QueryFailure> {
    let row = db.row(IS_WATCHED_ELSEWHERE, &[&agent.as_uuid(), &node]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}
