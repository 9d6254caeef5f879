//! Why a move failed.

use std::path::PathBuf;

use tokenrail_ports::StoreError;

use crate::postgres::PostgresOpenError;
use crate::sqlite::OpenError;

/// Why a move failed. The data folder still has the data.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Folder(#[from] OpenError),
    #[error(
        "there is no SQLite database in the data folder {folder:?}; choose another folder with --data-dir"
    )]
    NoData { folder: PathBuf },
    #[error(transparent)]
    Database(#[from] PostgresOpenError),
    #[error(
        "the database {database:?} already has agents; create an empty database, and move the data folder into that \
         one"
    )]
    NotEmpty { database: String },
    #[error("a server uses the database {database:?}; stop it, or create another database for the move")]
    InUse { database: String },
    #[error(
        "the database {database:?} contains an unfinished move of another data folder ({folder}); run that move \
         again, or drop the database and create an empty one"
    )]
    OtherMove { database: String, folder: String },
    #[error(
        "the stored data of {what} is corrupt, so nothing was moved; \"tokenrail doctor\" prints details; restore a \
         backup or, if only one agent is corrupt, start the server and purge that agent; then move again"
    )]
    Corrupt { what: String, source: StoreError },
    #[error("cannot read {what} in the data folder")]
    Unreadable { what: String, source: StoreError },
    #[error(
        "the copy of {what} in the database differs from the data folder, so the data folder stays in use; move into \
         another empty database"
    )]
    Differs { what: String },
    #[error("cannot read the copy of {what} in the database; run the same command again")]
    CopyUnreadable { what: String, source: StoreError },
    #[error("it is unknown whether the database has saved the copy; run the same command again")]
    OutcomeUnknown { source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the move failed because of an internal error; run the same command again")]
    Panic(#[from] tokio::task::JoinError),
}

impl MoveError {
    /// For a read of the data folder.
    pub(super) fn reading(what: impl Into<String>, source: StoreError) -> Self {
        let what = what.into();
        match source {
            StoreError::Corrupt(_) => Self::Corrupt { what, source },
            source => Self::Unreadable { what, source },
        }
    }

    /// Whether the data in the folder is corrupt, so that another try does not help.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Corrupt { .. } | Self::Folder(OpenError::Corrupt { .. }) => true,
            Self::Folder(_)
            | Self::NoData { .. }
            | Self::Database(_)
            | Self::NotEmpty { .. }
            | Self::InUse { .. }
            | Self::OtherMove { .. }
            | Self::Unreadable { .. }
            | Self::Differs { .. }
            | Self::CopyUnreadable { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Panic(_) => false,
        }
    }
}
