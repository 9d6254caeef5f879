//! Which agents have changed.
//!
//! A trigger writes the time of each change into its row. A change becomes visible later, when it is committed, and
//! perhaps after others that were made later. So a mark never passes a change that is still under way.

use tokenrail_ports::{StoreError, TouchMark, Touched};
use tokio_postgres::Row;

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::{agent_id_of, column};
use crate::postgres::statements::list_page::one_more;

/// All changes before this moment, in microseconds, are committed or undone: no transaction that has written anything
/// is older. `$1` is for the moment between taking the time and writing it.
const HORIZON: &str = "
    SELECT (extract(epoch FROM least(statement_timestamp(), (
        SELECT min(xact_start)
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
    ))) * 1000000)::bigint - $1::bigint * 1000";

const CHANGED: &str = "
    SELECT id, touched
    FROM (
        (SELECT id, touched FROM agents WHERE $1 < touched ORDER BY touched LIMIT $2)
        UNION ALL
        (SELECT id, touched FROM tombstones WHERE $1 < touched ORDER BY touched LIMIT $2)
    ) AS changed
    ORDER BY touched, id";

/// One update of many rows may give all of them the same time.
const CHANGED_AT: &str = "
    SELECT id, touched FROM agents WHERE touched = $1
    UNION ALL
    SELECT id, touched FROM tombstones WHERE touched = $1
    ORDER BY id";

/// The agents that have changed after this mark. Each statement sees a state of its own: the second one sees everything
/// that was committed before the horizon was taken.
pub(crate) async fn touched(
    db: &Link,
    after: Option<TouchMark>,
    limit: usize,
    slack_ms: u64,
) -> Result<Touched, QueryFailure> {
    let slack = i64::try_from(slack_ms).unwrap_or(i64::MAX);
    let horizon = db.row(HORIZON, &[&slack]).await?;
    let horizon: i64 = horizon.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default();
    let Some(after) = after else {
        return Ok(Touched { agents: Vec::new(), mark: TouchMark(horizon) });
    };
    let rows = db.rows(CHANGED, &[&after.0, &one_more(limit)]).await?;
    let change = |row: &Row| Ok((agent_id_of(row, 0)?, TouchMark(column(row, 1)?)));
    let mut agents = rows.iter().map(change).collect::<Result<Vec<_>, StoreError>>()?;
    let mut seen = horizon;
    if let Some((_, beyond)) = agents.get(limit).copied() {
        agents.truncate(limit);
        // What has the same time as the first one that does not fit comes with it.
        let before = agents.iter().filter(|(_, touch)| *touch < beyond).count();
        agents.truncate(before);
        if before == 0 {
            // The next mark passes all of them, so all of them must be returned.
            let rows = db.rows(CHANGED_AT, &[&beyond.0]).await?;
            agents = rows.iter().map(change).collect::<Result<Vec<_>, StoreError>>()?;
        }
        seen = horizon.min(agents.last().map_or(after.0, |(_, touch)| touch.0));
    }
    // Never back: the horizon of a long transaction may be before the mark of an earlier call.
    Ok(Touched { agents, mark: after.max(TouchMark(seen)) })
}
