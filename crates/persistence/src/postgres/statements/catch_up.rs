//! After a failover: whether all nodes have repeated what it may have lost.
//!
//! Until then, something that is missing may come back. So nobody takes agents over, claims launches, declares nodes
//! lost, or purges the agents of lost nodes. It is noted in the database, so that a node that joins later knows it too.

use std::time::Duration;

use crate::postgres::config::PostgresLimits;
use crate::postgres::database::known_server::UNKNOWN_TIMELINE;
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::membership::JoinedNode;
use crate::postgres::statements::columns::column;

/// The first timeline that is noted may be that of the first server.
const NOTE_TIMELINE: &str = "
    UPDATE cluster
    SET timeline = $1,
        timeline_since = CASE
            WHEN timeline = 0 THEN 0 ELSE (extract(epoch FROM clock_timestamp()) * 1000)::bigint
        END
    WHERE one = 1 AND timeline < $1";

const SINCE: &str = "
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - timeline_since
    FROM cluster
    WHERE one = 1 AND timeline = $1 AND 0 < timeline_since";

/// The commit waits for no standby: it would hold the row of the node, and beats would wait for it.
const NOTE_HEALED: &str = "
    UPDATE nodes
    SET healed = $3
    WHERE id = $1 AND incarnation = $2 AND folder = $4 AND healed < $3
        AND set_config('synchronous_commit', 'off', true) IS NOT NULL";

/// Like `NOTE_HEALED`.
const NOTE_TOLD: &str = "
    UPDATE nodes
    SET told = $3
    WHERE id = $1 AND incarnation = $2 AND folder = $4 AND told < $3
        AND set_config('synchronous_commit', 'off', true) IS NOT NULL";

/// If the clock of the database is set back, the time is over.
const IS_AWAITED: &str = "
    SELECT EXISTS (
        SELECT
        FROM cluster, LATERAL (
            SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - timeline_since AS since
        ) AS failover
        WHERE one = 1 AND 0 < timeline_since AND 0 <= since
            AND (
                since < $1
                OR since < $2 AND EXISTS (
                    SELECT FROM nodes WHERE state = 'alive' AND least(healed, told) < cluster.timeline
                )
            )
    )";

const OTHERS_HEAL: &str = "
    SELECT EXISTS (SELECT FROM nodes WHERE state = 'alive' AND id <> $1 AND healed < $2)";

const NEWEST_BEAT: &str = "SELECT beat FROM nodes WHERE id = $1 AND incarnation = $2 AND folder = $3";

/// How long nodes wait for each other after a failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatchUpTimes {
    least_ms: u64,
    most_ms: u64,
}

impl CatchUpTimes {
    pub(crate) fn of(limits: &PostgresLimits) -> Self {
        Self { least_ms: limits.catch_up_least_ms, most_ms: limits.catch_up_ms }
    }
}

/// Notes on which timeline the database is. Returns how long ago the failover to it was noticed, if there was one.
pub(crate) async fn note_timeline(db: &Link) -> Result<Option<Duration>, QueryFailure> {
    let timeline = i64::from(db.timeline());
    db.run(NOTE_TIMELINE, &[&timeline]).await?;
    let row = db.row(SINCE, &[&timeline]).await?;
    let since = row.as_ref().map(|row| column::<i64>(row, 0)).transpose()?;
    Ok(since.and_then(|since| u64::try_from(since).ok()).map(Duration::from_millis))
}

/// The newest beat of this node. `None` if the database has lost that it has joined.
pub(crate) async fn newest_beat(db: &Link, node: JoinedNode) -> Result<Option<u64>, QueryFailure> {
    let JoinedNode { id, incarnation, folder, schema: _ } = node;
    let row = db.row(NEWEST_BEAT, &[&id, &incarnation, &folder]).await?;
    Ok(row.as_ref().map(|row| column::<i64>(row, 0)).transpose()?.map(i64::unsigned_abs))
}

/// Notes that a node has repeated everything on the timeline of this connection.
pub(crate) async fn note_healed(db: &Link, node: JoinedNode) -> Result<(), QueryFailure> {
    note(db, NOTE_HEALED, node).await
}

/// Notes that a node has said, on the timeline of this connection, how far it had shown journals.
pub(crate) async fn note_told(db: &Link, node: JoinedNode) -> Result<(), QueryFailure> {
    note(db, NOTE_TOLD, node).await
}

async fn note(db: &Link, statement: &str, node: JoinedNode) -> Result<(), QueryFailure> {
    let JoinedNode { id, incarnation, folder, schema: _ } = node;
    if db.timeline() != UNKNOWN_TIMELINE {
        db.run(statement, &[&id, &incarnation, &i64::from(db.timeline()), &folder]).await?;
    }
    Ok(())
}

/// Whether something that is missing may still be repeated.
pub(crate) async fn is_awaited(db: &Link, times: CatchUpTimes) -> Result<bool, QueryFailure> {
    let bound = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let row = db.row(IS_AWAITED, &[&bound(times.least_ms), &bound(times.most_ms)]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Whether another node may still repeat a turn or a key. A number that is free until then may be the one that it has
/// acknowledged. Mostly there was no failover, and nothing is asked.
pub(crate) async fn may_lack_turns(db: &Link, node: i64, times: CatchUpTimes) -> Result<bool, QueryFailure> {
    match db.since_failover() {
        // The failover may have lost that another node has joined, so that nothing shows that it heals.
        Some(since) if since < Duration::from_millis(times.least_ms) => Ok(true),
        Some(since) if since < Duration::from_millis(times.most_ms) => others_heal(db, node).await,
        _ => Ok(false),
    }
}

/// Whether another node that is alive has not repeated everything yet.
pub(crate) async fn others_heal(db: &Link, node: i64) -> Result<bool, QueryFailure> {
    let row = db.row(OTHERS_HEAL, &[&node, &i64::from(db.timeline())]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}
