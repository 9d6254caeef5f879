//! The mark of a move into this database, from the first row until the folder of the data belongs to the database.
//!
//! It is a table that exists only so long, and not a migration.

use tokio_postgres::Row;
use uuid::Uuid;

use crate::postgres::database::link::{Connector, Link};
use crate::postgres::database::schema;
use crate::postgres::error::{PostgresOpenError, QueryFailure};
use crate::postgres::statements::columns::column;

const EXISTS: &str = "SELECT to_regclass('unfinished_move') IS NOT NULL";

const FIND: &str = "SELECT id, folder, compared FROM unfinished_move WHERE one = 1";

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS unfinished_move (
        one int PRIMARY KEY CHECK (one = 1),
        -- Also in the data folder.
        id uuid NOT NULL,
        -- For people.
        folder bytea NOT NULL,
        -- All data is there, and equals that of the folder.
        compared boolean NOT NULL
    )";

const NOTE: &str = "
    INSERT INTO unfinished_move (one, id, folder, compared)
    VALUES (1, $1, $2, false)
    ON CONFLICT (one) DO UPDATE
    SET id = excluded.id, folder = excluded.folder, compared = false";

const COMPARED: &str = "UPDATE unfinished_move SET compared = true WHERE one = 1";

const REMOVE: &str = "DROP TABLE IF EXISTS unfinished_move";

/// A move that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnfinishedMove {
    pub(crate) id: Uuid,
    /// The data folder, for people.
    pub(crate) folder: String,
    /// The database is complete. Perhaps the folder does not belong to it yet.
    pub(crate) compared: bool,
}

pub(crate) async fn find(db: &Link) -> Result<Option<UnfinishedMove>, QueryFailure> {
    let exists = db.row(EXISTS, &[]).await?.map(|row| column::<bool>(&row, 0)).transpose()?;
    if exists != Some(true) {
        return Ok(None);
    }
    db.row(FIND, &[]).await?.as_ref().map(of_row).transpose()
}

fn of_row(row: &Row) -> Result<UnfinishedMove, QueryFailure> {
    let folder = String::from_utf8_lossy(column(row, 1)?).into_owned();
    Ok(UnfinishedMove { id: column(row, 0)?, folder, compared: column(row, 2)? })
}

/// Marks the database, in the transaction that copies the data.
pub(crate) async fn note(db: &Link, id: Uuid, folder: &str) -> Result<(), QueryFailure> {
    db.run(CREATE, &[]).await?;
    db.run(NOTE, &[&id, &folder.as_bytes()]).await?;
    Ok(())
}

pub(crate) async fn note_compared(db: &Link) -> Result<(), QueryFailure> {
    db.run(COMPARED, &[]).await?;
    Ok(())
}

pub(crate) async fn remove(db: &Link) -> Result<(), QueryFailure> {
    db.run(REMOVE, &[]).await?;
    Ok(())
}

/// Refuses a database whose data has not been compared: the data folder still has the truth.
pub(crate) async fn refuse(connector: &Connector) -> Result<(), PostgresOpenError> {
    let address = &connector.address;
    let link = connector.connect_only().await.map_err(|failure| schema::refused(address, failure))?;
    match find(&link).await.map_err(|failure| schema::open_error(address, failure))? {
        Some(UnfinishedMove { folder, compared: false, .. }) => {
            Err(PostgresOpenError::UnfinishedMove { database: address.database.clone(), folder })
        }
        _ => Ok(()),
    }
}
