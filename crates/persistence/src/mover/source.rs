//! The data folder from which the data moves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use uuid::Uuid;

use super::counts::{COUNTS, MoveCounts};
use super::error::MoveError;
use crate::sqlite::OpenError;
use crate::sqlite::SqliteLimits;
use crate::sqlite::database::connection::open_reader;
use crate::sqlite::database::folder::{Folder, database_path};
use crate::sqlite::database::schema;
use crate::sqlite::error::store_error;
use crate::sqlite::maintenance::start_check;

/// The data folder. No server can use it.
pub(super) struct Source {
    pub(super) folder: Folder,
    path: PathBuf,
    /// A move that was begun earlier.
    pub(super) noted: Option<Uuid>,
    /// That move has ended, but for its marks.
    pub(super) is_handed_over: bool,
}

impl Source {
    /// Claims the folder. Blocks.
    pub(super) fn claim(folder: &Path) -> Result<Self, MoveError> {
        let path = database_path(folder);
        // A folder must not be created only to find nothing in it.
        if !path.exists() {
            return Err(MoveError::NoData { folder: folder.to_owned() });
        }
        let folder = Folder::claim(folder)?;
        let noted = folder.noted_move()?;
        let is_handed_over = noted.is_some() && folder.is_elsewhere()?;
        if !is_handed_over {
            // Refuses what a server would refuse.
            folder.database()?;
        }
        let source = Self { folder, path, noted, is_handed_over };
        source.check()?;
        Ok(source)
    }

    fn check(&self) -> Result<(), OpenError> {
        schema::check_sqlite()?;
        let db = self.connect().map_err(|error| OpenError::sqlite(&self.path, error))?;
        match schema::missing(&db, &self.path)?.len() {
            0 => start_check::check(&db, &self.path, SqliteLimits::default().start_check_bytes),
            missing => Err(OpenError::OlderSchema { missing }),
        }
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        open_reader(&self.path, SqliteLimits::default().busy_timeout_ms)
    }

    /// A connection that changes nothing. Blocks.
    pub(super) fn open(&self) -> Result<Connection, MoveError> {
        self.connect().map_err(|error| MoveError::reading("the database", store_error(error)))
    }

    pub(super) fn name(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub(super) async fn counts(self: &Arc<Self>) -> Result<MoveCounts, MoveError> {
        let source = Arc::clone(self);
        let count = move || {
            let db = source.open()?;
            let counts = db.query_row(COUNTS, [], |row| MoveCounts::of(|at| row.get(at)));
            counts.map_err(|error| MoveError::reading("the database", store_error(error)))
        };
        tokio::task::spawn_blocking(count).await?
    }

    /// Notes the move in the folder.
    pub(super) async fn note(self: &Arc<Self>, id: Uuid) -> Result<(), MoveError> {
        let source = Arc::clone(self);
        Ok(tokio::task::spawn_blocking(move || source.folder.note_move(id)).await??)
    }

    /// The move that is noted in the folder now.
    pub(super) async fn noted_now(self: &Arc<Self>) -> Result<Option<Uuid>, MoveError> {
        let source = Arc::clone(self);
        Ok(tokio::task::spawn_blocking(move || source.folder.noted_move()).await??)
    }
}
