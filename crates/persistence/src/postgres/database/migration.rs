//! Applies the migrations that a database lacks.
//!
//! The other servers of the database work meanwhile. A statement that waits for a table lets nobody else use it. So it
//! waits only for a moment: if a long transaction uses the table, the migration lets everybody pass, and tries again
//! later.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;

use crate::postgres::database::address::Address;
use crate::postgres::database::failures::ChangeFailure;
use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::schema::{check_server, missing, open_error, refused};
use crate::postgres::error::{PostgresOpenError, QueryFailure, TableHolder, is_deadlock};

/// A program must know at least this schema to use a database with all migrations.
const COMPATIBLE_FROM: i32 = 1;

/// The key of the lock that one start holds while it migrates: the letters `TkRl`.
const MIGRATION_LOCK: i64 = 0x546b_526c;

/// How long a migration waits for a table before it lets the others pass. Everybody else who wants to use the table
/// waits this long too, so it is shorter than all their waits.
pub(crate) const TABLE_LOCK_WAIT_MS: u64 = 500;

/// How long the others have the tables for themselves after that.
const PAUSE: Duration = Duration::from_secs(1);

const NEW_CLUSTER: &str = "
    INSERT INTO cluster (one, id, schema, compatible_from)
    VALUES (1, gen_random_uuid(), $1, $2)";

const MIGRATED: &str = "
    UPDATE cluster
    SET schema = $1, compatible_from = greatest(compatible_from, $2)
    WHERE one = 1";

/// Who has used a table for the longest time. The server does not say since when a stronger role has, so such
/// transactions come first: those of this program do not last long.
const HOLDER: &str = "
    SELECT pid, coalesce(application_name, '')
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid IN (
        SELECT pid
        FROM pg_locks
        JOIN pg_class ON pg_class.oid = pg_locks.relation
        WHERE granted AND locktype = 'relation' AND relkind IN ('r', 'p')
            AND relnamespace = current_schema()::regnamespace)
    ORDER BY xact_start NULLS FIRST
    LIMIT 1";

/// Why a migration had no effect.
enum StepFailure {
    /// Somebody uses a table.
    Locked,
    Failed(PostgresOpenError),
}

/// Checks the server, and applies all missing migrations, each in its own transaction.
pub(crate) async fn migrate(connector: &Connector) -> Result<(), PostgresOpenError> {
    let address = &connector.address;
    let link = connector.connect_only().await.map_err(|failure| refused(address, failure))?;
    check_server(&link, address).await?;
    if missing(&link, connector).await?.is_empty() {
        return Ok(());
    }
    let failed = |error: tokio_postgres::Error| open_error(address, error.into());
    let wait = connector.limits.migration_wait_ms;
    let until = Instant::now() + Duration::from_millis(wait);
    // A migration takes what it takes.
    link.batch(&format!("SET lock_timeout = {wait}; SET statement_timeout = 0")).await.map_err(failed)?;
    // Nobody but other starts waits for this lock. It ends with the connection.
    match link.rows("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await {
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            return Err(PostgresOpenError::Migrating);
        }
        locked => locked.map_err(failed)?,
    };
    // Another start may have migrated it meanwhile.
    while let [migration, later @ ..] = missing(&link, connector).await? {
        let schema = connector.steps.schema() - later.len() as i32;
        while let Err(failure) = apply(&link, address, migration, schema).await {
            match failure {
                StepFailure::Failed(error) => return Err(error),
                StepFailure::Locked if until <= Instant::now() => return Err(in_use(&link).await),
                StepFailure::Locked => {
                    tracing::info!(
                        schema,
                        "cannot migrate the database yet, because a transaction uses its tables; retrying"
                    );
                    sleep(PAUSE).await;
                }
            }
        }
    }
    link.rows("SELECT pg_advisory_unlock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    Ok(())
}

/// Applies one migration, and notes it.
async fn apply(link: &Link, address: &Address, migration: &str, schema: i32) -> Result<(), StepFailure> {
    let failed = |error: tokio_postgres::Error| {
        if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) || is_deadlock(&error) {
            StepFailure::Locked
        } else {
            StepFailure::Failed(open_error(address, error.into()))
        }
    };
    let working = async {
        link.batch(&format!("BEGIN; SET LOCAL lock_timeout = {TABLE_LOCK_WAIT_MS}")).await?;
        link.batch(migration).await?;
        let noted = if schema == 1 { NEW_CLUSTER } else { MIGRATED };
        link.run(noted, &[&schema, &COMPATIBLE_FROM]).await
    };
    if let Err(error) = working.await {
        let failure = failed(error);
        link.batch("ROLLBACK").await.map_err(failed)?;
        return Err(failure);
    }
    link.save(link.commit()).await.map_err(|failure| match failure {
        ChangeFailure::NotSaved(QueryFailure::Failed(error)) => failed(error),
        ChangeFailure::NotSaved(failure) => StepFailure::Failed(open_error(address, failure)),
        ChangeFailure::Unknown(cause) => {
            StepFailure::Failed(PostgresOpenError::Server { source: Box::new(cause) })
        }
    })
}

async fn in_use(link: &Link) -> PostgresOpenError {
    // It only helps to find the transaction, which may have ended by now.
    let found = link.row(HOLDER, &[]).await.ok().flatten();
    let holder = found
        .and_then(|row| Some(TableHolder { pid: row.try_get(0).ok()?, application: row.try_get(1).ok()? }));
    PostgresOpenError::TablesInUse { holder }
}
