//! Which versions of the program may use the database. Removes what only older versions need.

use std::time::Duration;

use tokenrail_ports::StoreError;

use crate::postgres::command::ChangeCommand;
use crate::postgres::config::PostgresLimits;
use crate::postgres::database::link::Link;
use crate::postgres::database::migration::TABLE_LOCK_WAIT_MS;
use crate::postgres::database::steps::Removal;
use crate::postgres::error::QueryFailure;
use crate::postgres::statements::columns::column;

const COMPATIBLE_FROM: &str = "SELECT compatible_from FROM cluster WHERE one = 1";

const IS_NEEDED: &str = "
    SELECT EXISTS (SELECT FROM nodes WHERE schema < $1 AND state IN ('alive', 'away'))";

/// No node joins meanwhile. A node that joins afterwards finds that it must not. Nodes cannot beat meanwhile, so this
/// waits only for a moment for what somebody uses.
fn keep_others_out() -> String {
    format!("SET LOCAL lock_timeout = {TABLE_LOCK_WAIT_MS}; LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")
}

const EXCLUDE: &str = "UPDATE cluster SET compatible_from = greatest(compatible_from, $1) WHERE one = 1";

/// # Errors
/// [`StoreError::Outdated`] if a program that knows this schema must not use the database.
pub(crate) async fn refuse_if_outdated(db: &Link, schema: i32) -> Result<(), QueryFailure> {
    let required = compatible_from(db).await?;
    if schema < required {
        return Err(StoreError::Outdated { required, known: schema }.into());
    }
    Ok(())
}

/// A program must know at least this schema.
async fn compatible_from(db: &Link) -> Result<i32, QueryFailure> {
    let row = db.row(COMPATIBLE_FROM, &[]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or_default())
}

/// Whether a node that is alive or away still needs what this removes.
async fn is_needed(db: &Link, removal: &Removal) -> Result<bool, QueryFailure> {
    let row = db.row(IS_NEEDED, &[&removal.schema]).await?;
    Ok(row.as_ref().map(|row| column(row, 0)).transpose()?.unwrap_or(true))
}

/// Whether this may be removed now.
pub(crate) async fn is_due(db: &Link, removal: &Removal) -> Result<bool, QueryFailure> {
    Ok(compatible_from(db).await? < removal.schema && !is_needed(db, removal).await?)
}

/// Removes what only older programs need, unless one of them is still there.
pub(crate) struct RemoveCommand(pub(crate) &'static Removal);

impl ChangeCommand for RemoveCommand {
    type Answer = bool;

    fn patience(&self, limits: &PostgresLimits) -> Duration {
        Duration::from_millis(limits.migration_wait_ms)
    }

    async fn run(&self, db: &Link) -> Result<bool, QueryFailure> {
        db.batch(&keep_others_out()).await?;
        if !is_due(db, self.0).await? {
            return Ok(false);
        }
        db.batch(self.0.sql).await?;
        db.run(EXCLUDE, &[&self.0.schema]).await?;
        Ok(true)
    }
}
