//! What grows while something keeps the database from cleaning up.

use tokenrail_ports::{StoreAge, StoreError};

use crate::postgres::database::link::Link;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::column;

/// Everybody sees the age of the snapshots of other sessions.
const AGE: &str = "
    SELECT
        coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()), 0)::bigint,
        (SELECT max(age(datfrozenxid)) FROM pg_database)::bigint";

/// How old the oldest snapshot and the oldest transaction id are.
pub(crate) async fn read(db: &Link) -> Result<StoreAge, QueryFailure> {
    let Some(row) = db.row(AGE, &[]).await? else { return Ok(StoreAge::default()) };
    let number = |at| Ok::<u64, StoreError>(column::<i64>(&row, at)?.unsigned_abs());
    Ok(StoreAge { oldest_snapshot: number(0)?, transaction_id: number(1)? })
}
