//! The migrations, and the databases to which they may be applied.

use std::path::Path;

use rusqlite::{Connection, Error, TransactionBehavior};

use crate::sqlite::error::OpenError;

/// The application id in the header of the file: the letters `TkRl`.
const APPLICATION_ID: i64 = 0x546b_526c;

/// Earlier versions of SQLite can lose data if two connections checkpoint at once.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// The `n`th migrates a database from `user_version` n to n + 1.
const MIGRATIONS: [&str; 12] = [
    include_str!("../../../../../migrations/0001_initial.sql"),
    include_str!("../../../../../migrations/0002_checksums.sql"),
    include_str!("../../../../../migrations/0003_copies.sql"),
    include_str!("../../../../../migrations/0004_lists.sql"),
    include_str!("../../../../../migrations/0005_wipe.sql"),
    include_str!("../../../../../migrations/0006_list_order.sql"),
    include_str!("../../../../../migrations/0007_base_commits.sql"),
    include_str!("../../../../../migrations/0008_prompt_images.sql"),
    include_str!("../../../../../migrations/0009_epochs.sql"),
    include_str!("../../../../../migrations/0010_patches.sql"),
    include_str!("../../../../../migrations/0011_parents.sql"),
    include_str!("../../../../../migrations/0012_cheaper_checks.sql"),
];

/// Refuses a version of SQLite that can lose data.
pub(crate) fn check_sqlite() -> Result<(), OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::SqliteTooOld { found: rusqlite::version() });
    }
    Ok(())
}

/// Applies all missing migrations, in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let missing = missing(connection, path)?;
    if missing.is_empty() {
        return Ok(());
    }
    apply(connection, missing).map_err(|error| OpenError::sqlite(path, error))
}

/// The migrations that are not applied yet.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::NewerSchema`].
pub(crate) fn missing(connection: &Connection, path: &Path) -> Result<&'static [&'static str], OpenError> {
    let known = MIGRATIONS.len() as i64;
    let state = FoundSchema::of(connection).map_err(|error| OpenError::sqlite(path, error))?;
    if state.application_id != APPLICATION_ID && !state.is_new() {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let missing = usize::try_from(state.version).ok().and_then(|done| MIGRATIONS.get(done..));
    missing.ok_or(OpenError::NewerSchema { found: state.version, known })
}

fn apply(connection: &mut Connection, missing: &[&str]) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()
}

struct FoundSchema {
    application_id: i64,
    version: i64,
    tables: i64,
}

impl FoundSchema {
    fn of(connection: &Connection) -> Result<Self, Error> {
        Ok(Self {
            application_id: connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
            version: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
            tables: connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?,
        })
    }

    fn is_new(&self) -> bool {
        self.application_id == 0 && self.version == 0 && self.tables == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(db: &Connection) -> Vec<(String, Option<String>)> {
        let mut statement = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn migrated(mut db: Connection) -> Connection {
        migrate(&mut db, Path::new("some.db")).unwrap();
        db
    }

    #[test]
    fn a_database_of_any_version_becomes_like_a_new_one() {
        let new = schema(&migrated(Connection::open_in_memory().unwrap()));
        for version in 1..MIGRATIONS.len() {
            let mut old = Connection::open_in_memory().unwrap();
            apply(&mut old, &MIGRATIONS[..version]).unwrap();
            old.pragma_update(None, "user_version", version as i64).unwrap();
            assert_ne!(schema(&old), new, "version {version}");
            assert_eq!(schema(&migrated(old)), new, "version {version}");
        }
    }
}
