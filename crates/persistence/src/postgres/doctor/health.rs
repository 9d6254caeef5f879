//! How the server is doing: what slows it down, and what will stop it one day.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use super::{HintLinks, only};
use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;

/// Of other sessions, everybody sees the age of a snapshot in transactions. Its time is visible only to a member of
/// `pg_read_all_stats`.
const HEALTH: &str = "
    SELECT current_setting('server_version_num')::int,
        coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()), 0)::bigint,
        (SELECT max(age(datfrozenxid)) FROM pg_database)::bigint,
        (SELECT sum(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots)::bigint,
        (SELECT count(*) FROM pg_replication_slots WHERE NOT active),
        (SELECT count(*) FROM pg_replication_slots)";

const NOTHING: &str = "SELECT 1";

/// How often a time is measured. The shortest one counts.
const TRIES: usize = 3;

/// The first minor version of each major one whose VACUUM leaves what unread notifications need. Before, LISTEN may
/// fail with "could not access status of transaction".
const LISTEN_FIXED: [(i32, i32); 4] = [(15, 16), (16, 12), (17, 8), (18, 2)];

/// How the server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresHealth {
    pub times: PostgresTimes,
    /// How many transactions have begun since the oldest snapshot that is in use. No row that was removed since then
    /// can be cleaned up.
    pub oldest_snapshot: i64,
    /// The age of the oldest transaction id of all databases. PostgreSQL stops at about 2.1 billion.
    pub oldest_xid: i64,
    pub slots: ReplicationSlots,
    /// For a version with a bug of LISTEN, the one that fixes it.
    pub listen_fixed_in: Option<String>,
}

/// How long the server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresTimes {
    pub round_trip: Duration,
    /// A small change, as durable as everything that is saved.
    pub commit: Duration,
    /// From a hint to its arrival. `None` if it did not arrive.
    pub hint: Option<Duration>,
}

/// What keeps the log for standbys that are away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationSlots {
    pub count: i64,
    /// Nobody uses them.
    pub inactive: i64,
    pub kept_bytes: i64,
}

pub(super) async fn health(link: &Link, hint: Option<Duration>) -> Result<PostgresHealth, QueryFailure> {
    let row = only(link, HEALTH).await?;
    let round_trip = shortest(async || Ok(link.row(NOTHING, &[]).await.map(drop)?)).await?;
    let commit = shortest(async || link.barrier().await).await?;
    let times = PostgresTimes { round_trip, commit, hint };
    Ok(of_row(&row, times)?)
}

fn of_row(row: &Row, times: PostgresTimes) -> Result<PostgresHealth, Error> {
    let slots = ReplicationSlots {
        count: row.try_get(5)?,
        inactive: row.try_get(4)?,
        kept_bytes: row.try_get::<_, Option<i64>>(3)?.unwrap_or_default(),
    };
    Ok(PostgresHealth {
        times,
        oldest_snapshot: row.try_get(1)?,
        oldest_xid: row.try_get(2)?,
        slots,
        listen_fixed_in: listen_fixed_in(row.try_get(0)?),
    })
}

async fn shortest(mut run: impl AsyncFnMut() -> Result<(), QueryFailure>) -> Result<Duration, QueryFailure> {
    let mut shortest = Duration::MAX;
    for _ in 0..TRIES {
        let begun = Instant::now();
        run().await?;
        shortest = shortest.min(begun.elapsed());
    }
    Ok(shortest)
}

/// `number` as in `server_version_num`.
fn listen_fixed_in(number: i32) -> Option<String> {
    let (major, minor) = (number / 10_000, number % 10_000);
    let (_, fixed) = LISTEN_FIXED.into_iter().find(|(of, fixed)| *of == major && minor < *fixed)?;
    Some(format!("{major}.{fixed}"))
}

/// How long a hint takes from one connection to another, on a channel that no server listens to. `None` if it does not
/// arrive in time.
pub(super) async fn hint(links: &HintLinks, wait: Duration) -> Result<Option<Duration>, QueryFailure> {
    let HintLinks { sender, listener, heard } = links;
    listener.batch("LISTEN tokenrail_doctor").await?;
    let mut shortest = None;
    for _ in 0..TRIES {
        let begun = Instant::now();
        // The user may not be allowed to. Nothing else depends on it.
        let is_sent = sender.batch("SELECT pg_notify('tokenrail_doctor', '')").await.is_ok();
        if !is_sent || timeout(wait, heard.notified()).await.is_err() {
            break;
        }
        let took = begun.elapsed();
        shortest = Some(shortest.map_or(took, |shortest: Duration| shortest.min(took)));
    }
    Ok(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_which_listen_fails_are_known() {
        assert_eq!(listen_fixed_in(150_015).as_deref(), Some("15.16"));
        assert_eq!(listen_fixed_in(180_000).as_deref(), Some("18.2"));
        for fixed in [150_016, 160_012, 170_010, 180_002, 190_000] {
            assert_eq!(listen_fixed_in(fixed), None, "{fixed}");
        }
    }
}
