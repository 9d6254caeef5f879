//! The store that the configuration chooses. Everything else uses it through its ports.

use std::io;
use std::sync::Arc;

use tokenrail_persistence::{OpenError, SqliteStore, StoreConfig, Synchronous};
use tokenrail_ports::{IAgentRepository, IArchive, IJournal, INodes};

use crate::config::{Config, StorageConfig, SyncMode};

/// An open store. Clones are the same store.
#[derive(Clone)]
pub(crate) enum Store {
    Sqlite(SqliteStore),
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    #[error("storage.url: this version cannot use PostgreSQL yet; remove it")]
    Postgres,
    #[error("cannot open the database")]
    Panic(#[source] io::Error),
}

impl OpenStoreError {
    /// Whether the stored data is corrupt, so that another start does not help.
    pub(crate) fn is_corrupt(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(error, OpenError::Corrupt { .. }),
            Self::Postgres | Self::Panic(_) => false,
        }
    }
}

impl Store {
    /// Opens the store, or creates a new one, and claims the data folder.
    pub(crate) async fn open(config: &Config) -> Result<Self, OpenStoreError> {
        match &config.storage {
            StorageConfig::Sqlite { synchronous } => {
                let config = sqlite(config, *synchronous);
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(config)).await;
                let store = opened.map_err(|error| OpenStoreError::Panic(io::Error::other(error)))??;
                Ok(Self::Sqlite(store))
            }
            StorageConfig::Postgres(_) => Err(OpenStoreError::Postgres),
        }
    }

    pub(crate) fn journal(&self) -> Arc<dyn IJournal> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    pub(crate) fn archive(&self) -> Arc<dyn IArchive> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    pub(crate) fn nodes(&self) -> Arc<dyn INodes> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    pub(crate) fn agents(&self) -> Arc<dyn IAgentRepository> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    /// Finishes what is being written. Later calls fail.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
        }
    }
}

fn sqlite(config: &Config, synchronous: SyncMode) -> StoreConfig {
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
