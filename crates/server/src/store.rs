//! The store that the configuration chooses. Everything else uses it through its ports.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenrail_persistence::{
    DataFolder, DatabaseClaim, Durability, OpenError, Password, PostgresConfig, PostgresOpenError,
    PostgresStore, SqliteStore, StoreConfig, Synchronous,
};
use tokenrail_ports::{IAgentRepository, IArchive, IJournal, INodes};

use crate::config::{Config, DurabilityMode, PasswordSource, PostgresBlock, StorageConfig, SyncMode};

/// An open store. Clones are the same store.
#[derive(Clone)]
pub(crate) enum Store {
    /// It claims the data folder itself.
    Sqlite(SqliteStore),
    Postgres {
        store: PostgresStore,
        _claims: Arc<(DataFolder, DatabaseClaim)>,
    },
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] PostgresOpenError),
    #[error("cannot read storage.password_file {}", .path.display())]
    PasswordFile { path: PathBuf, source: io::Error },
    #[error("storage.password_file {} is empty; write the password of the database into it", .path.display())]
    NoPassword { path: PathBuf },
    #[error("cannot open the database")]
    Panic(#[source] io::Error),
}

impl OpenStoreError {
    /// Whether the stored data is corrupt, so that another start does not help.
    pub(crate) fn is_corrupt(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(error, OpenError::Corrupt { .. }),
            Self::Postgres(_) | Self::PasswordFile { .. } | Self::NoPassword { .. } | Self::Panic(_) => false,
        }
    }
}

impl Store {
    /// Opens the store, or creates a new one, and claims the data folder.
    pub(crate) async fn open(config: &Config) -> Result<Self, OpenStoreError> {
        match &config.storage {
            StorageConfig::Sqlite { synchronous } => {
                let config = sqlite_config(config, *synchronous);
                Ok(Self::Sqlite(opened(move || SqliteStore::open(config)).await?))
            }
            StorageConfig::Postgres(block) => {
                let folder = config.data_dir.clone();
                let folder = opened(move || DataFolder::claim(&folder)).await?;
                let config = postgres_config(block)?;
                // Before the store, because a second server must not even migrate the database.
                let claim = DatabaseClaim::take(&config).await?;
                let store = PostgresStore::open(config).await?;
                Ok(Self::Postgres { store, _claims: Arc::new((folder, claim)) })
            }
        }
    }

    pub(crate) fn journal(&self) -> Arc<dyn IJournal> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    pub(crate) fn archive(&self) -> Arc<dyn IArchive> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    pub(crate) fn nodes(&self) -> Arc<dyn INodes> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    pub(crate) fn agents(&self) -> Arc<dyn IAgentRepository> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    /// Finishes what is being written. Later calls fail.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres { store, .. } => store.close().await,
        }
    }
}

/// Opens it on a thread that may block.
async fn opened<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenStoreError> {
    let opened = tokio::task::spawn_blocking(open).await;
    Ok(opened.map_err(|error| OpenStoreError::Panic(io::Error::other(error)))??)
}

/// The configuration of a store on PostgreSQL. Reads the password.
pub(crate) fn postgres_config(block: &PostgresBlock) -> Result<PostgresConfig, OpenStoreError> {
    let PostgresBlock { url, password, durability } = block;
    let password = match password {
        PasswordSource::None => None,
        PasswordSource::Variable(password) => Some(Password::new(password.reveal())),
        PasswordSource::File(path) => Some(password_of(path)?),
    };
    let durability = match durability {
        DurabilityMode::Auto => Durability::Auto,
        DurabilityMode::Replicated => Durability::Replicated,
        DurabilityMode::Primary => Durability::Primary,
    };
    Ok(PostgresConfig { password, durability, ..PostgresConfig::new(url) })
}

fn password_of(path: &Path) -> Result<Password, OpenStoreError> {
    let failed = |source| OpenStoreError::PasswordFile { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    // Most editors and `echo` end a file with a newline.
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err(OpenStoreError::NoPassword { path: path.to_owned() });
    }
    Ok(Password::new(password))
}

fn sqlite_config(config: &Config, synchronous: SyncMode) -> StoreConfig {
    let mut store = StoreConfig::new(&config.data_dir);
    store.synchronous = match synchronous {
        SyncMode::Full => Synchronous::Full,
        SyncMode::Normal => Synchronous::Normal,
    };
    store.limits.flood_bytes = config.limits.flood_bytes;
    store.limits.flood_rest = config.limits.flood_rest;
    store.limits.flood_wait_ms = config.limits.flood_wait_ms;
    store.limits.wal_bytes = config.limits.wal_bytes;
    store.limits.start_check_bytes = config.limits.start_check_bytes;
    store.limits.wipe_bytes = config.limits.wipe_bytes;
    store
}
