//! The store that the configuration chooses. Everything else uses it through its ports.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use tokenrail_persistence::{
    DataFolder, Durability, NodeIdentity, OpenError, Password, PostgresConfig, PostgresLimits,
    PostgresOpenError, PostgresStore, SilentBus, SqliteConfig, SqliteStore, Synchronous,
};
use tokenrail_ports::{IAgentRepository, IArchive, IBus, ICredentials, IInbox, IJournal, INodes, StoreError};

use crate::config::{
    Config, DurabilityMode, LimitsConfig, PasswordSource, PostgresBlock, StorageConfig, SyncMode,
};

/// An open store. Clones are the same store.
#[derive(Clone)]
pub(crate) enum Store {
    /// It claims the data folder itself.
    Sqlite(SqliteStore),
    Postgres {
        store: PostgresStore,
        _folder: Arc<DataFolder>,
    },
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] PostgresOpenError),
    #[error("cannot read the password file {} (storage.password_file)", .path.display())]
    PasswordFile { path: PathBuf, source: io::Error },
    #[error("the password file {} (storage.password_file) is empty; write the password of the database into it", .path.display())]
    NoPassword { path: PathBuf },
    #[error("cannot open the database")]
    Panic(#[source] io::Error),
}

impl OpenStoreError {
    /// Whether the database needs a newer version of the program.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(self, Self::Postgres(PostgresOpenError::NewerSchema { .. }))
    }

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
                let node = NodeIdentity { folder: folder.node(), name: config.cluster.name.clone() };
                let server_file = Some(server_file(&config.data_dir));
                let store = postgres_config(block, &config.limits)?;
                let mut store = PostgresConfig { node: Some(node), server_file, ..store };
                store.limits.kept_ms = config.cluster.failover_keep_s.saturating_mul(1000);
                store.has_test_step = config.next_schema;
                store.limits.kept_bytes = config.cluster.failover_keep_bytes;
                store.limits.kept_import_bytes = config.cluster.failover_keep_bytes;
                let store = PostgresStore::open(store).await?;
                Ok(Self::Postgres { store, _folder: Arc::new(folder) })
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

    pub(crate) fn inbox(&self) -> Arc<dyn IInbox> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    pub(crate) fn credentials(&self) -> Option<Arc<dyn ICredentials>> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres { store, .. } => Some(Arc::new(store.clone())),
        }
    }

    /// The hints of other nodes.
    pub(crate) fn bus(&self) -> Arc<dyn IBus> {
        match self {
            Self::Sqlite(_) => Arc::new(SilentBus),
            Self::Postgres { store, .. } => Arc::new(store.bus()),
        }
    }

    pub(crate) fn agents(&self) -> Arc<dyn IAgentRepository> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres { store, .. } => Arc::new(store.clone()),
        }
    }

    /// Whether this server may accept the token: see [`PostgresStore::agree_on_token`]. Nobody shares SQLite.
    pub(crate) async fn agree_on_token(
        &self,
        token: Option<&str>,
        silence: Duration,
    ) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(true),
            Self::Postgres { store, .. } => {
                Box::pin(store.agree_on_token(token.unwrap_or_default().as_bytes(), silence)).await
            }
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

/// Where a server notes which PostgreSQL server it uses.
pub(crate) fn server_file(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres.server")
}

/// The configuration of a store on PostgreSQL. Reads the password.
pub(crate) fn postgres_config(
    block: &PostgresBlock,
    limits: &LimitsConfig,
) -> Result<PostgresConfig, OpenStoreError> {
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
    let limits = postgres_limits(limits);
    Ok(PostgresConfig { password, durability, limits, ..PostgresConfig::new(url) })
}

pub(crate) fn postgres_limits(limits: &LimitsConfig) -> PostgresLimits {
    PostgresLimits {
        writers: limits.postgres_writers,
        pool_connections: limits.postgres_connections,
        pool_wait_ms: limits.postgres_connection_wait_ms,
        queued_appends: limits.postgres_queued_appends,
        statement_agents: limits.postgres_statement_agents,
        statement_bytes: limits.postgres_statement_bytes,
        openings: limits.postgres_openings,
        connect_timeout_ms: limits.postgres_connect_timeout_ms,
        answer_timeout_ms: limits.postgres_answer_timeout_ms,
        repeat_timeout_ms: limits.postgres_repeat_timeout_ms,
        read_timeout_ms: limits.postgres_read_timeout_ms,
        lock_timeout_ms: limits.postgres_lock_timeout_ms,
        tcp_user_timeout_ms: limits.postgres_tcp_timeout_ms,
        migration_wait_ms: limits.postgres_migration_wait_ms,
        hints: limits.postgres_hints,
        hint_pause_ms: limits.postgres_hint_pause_ms,
        hint_pause_per_node_ms: limits.postgres_hint_pause_per_node_ms,
        hint_check_ms: limits.postgres_hint_check_ms,
        hint_wait_ms: limits.postgres_hint_wait_ms,
        ..PostgresLimits::default()
    }
}

/// A label for people, so nothing depends on it.
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

fn sqlite_config(config: &Config, synchronous: SyncMode) -> SqliteConfig {
    let mut store = SqliteConfig::new(&config.data_dir);
    store.synchronous = match synchronous {
        SyncMode::Full => Synchronous::Full,
        SyncMode::Normal => Synchronous::Normal,
    };
    store.before_background_work = || {
        static WARNED: Once = Once::new();
        if let Err(error) = tokenrail_runner::work_in_background() {
            let error: &dyn std::error::Error = &error;
            WARNED.call_once(|| {
                tracing::warn!(error, "work in the background may delay other work for some milliseconds");
            });
        }
    };
    store.limits.flood_bytes = config.limits.flood_bytes;
    store.limits.flood_rest = config.limits.flood_rest;
    store.limits.flood_wait_ms = config.limits.flood_wait_ms;
    store.limits.wal_bytes = config.limits.wal_bytes;
    store.limits.start_check_bytes = config.limits.start_check_bytes;
    store.limits.wipe_bytes = config.limits.wipe_bytes;
    store
}
