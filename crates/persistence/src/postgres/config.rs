//! Where the database is and what bounds its use.

use std::fmt;

/// Where the database is and what bounds its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// `postgres://USER@HOST[:PORT][,HOST…]/DATABASE[?PARAMETER=VALUE&…]`, without a password. The parameters are
    /// those of libpq that the driver knows, and `sslmode` and `sslrootcert`.
    pub url: String,
    pub password: Option<Password>,
    pub durability: Durability,
    pub limits: PostgresLimits,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The disk of the primary, and the standby if the server has a synchronous one.
    #[default]
    Auto,
    /// The same. Without a synchronous standby, the store is not ready.
    Replicated,
    /// The disk of the primary.
    Primary,
}

impl PostgresConfig {
    /// A store at `url` with the defaults.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            durability: Durability::default(),
            limits: PostgresLimits::default(),
        }
    }
}

/// A password, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Every bound of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresLimits {
    /// Writers of agents' output, each with a connection of its own.
    pub writers: usize,
    /// Appends in the queue of a writer. Callers beyond that wait until there is room.
    pub queued_appends: usize,
    /// Agents in one statement, at most.
    pub statement_agents: usize,
    /// Bytes in one statement, at most; a single append may exceed it.
    pub statement_bytes: usize,
    /// Agents whose keys a writer remembers.
    pub known_agents: usize,
    /// Connections for everything else: reads and commands. Further ones wait.
    pub pool_connections: usize,
    /// How long to wait for a new connection.
    pub connect_timeout_ms: u64,
    /// How long to wait for the answer to a write. After that, its outcome is unknown.
    pub answer_timeout_ms: u64,
    /// How long a read may take.
    pub read_timeout_ms: u64,
    /// How long a command waits for a row that another connection has locked. Appends wait for their turn.
    pub lock_timeout_ms: u64,
    /// How long the server keeps a transaction open in which nothing happens.
    pub idle_transaction_ms: u64,
    /// How often the server checks whether the client of a running statement is still there.
    pub client_check_ms: u64,
    /// How long sent bytes may stay unacknowledged before the connection counts as broken.
    pub tcp_user_timeout_ms: u64,
    /// After how long without traffic the operating system checks the other end of a connection.
    pub keepalive_idle_ms: u64,
    /// How long a start waits for the claim of a server that has just ended.
    pub claim_wait_ms: u64,
    /// How long a start waits for another one that migrates the database.
    pub migration_wait_ms: u64,
    /// Bytes of batches or rows that a read fetches at once, about.
    pub fetch_bytes: usize,
    /// Batches or rows that a read fetches at once, at most.
    pub fetch_rows: usize,
    /// Bytes of events in one compacted block, about. Packing takes about 16 times as much memory.
    pub block_bytes: usize,
    /// Events in one compacted block, at most.
    pub block_events: usize,
}

impl Default for PostgresLimits {
    fn default() -> Self {
        Self {
            writers: 4,
            queued_appends: 1024,
            statement_agents: 512,
            statement_bytes: 8 << 20,
            known_agents: 1 << 16,
            pool_connections: 8,
            connect_timeout_ms: 5000,
            answer_timeout_ms: 5000,
            read_timeout_ms: 30_000,
            lock_timeout_ms: 2000,
            idle_transaction_ms: 10_000,
            client_check_ms: 2000,
            tcp_user_timeout_ms: 10_000,
            keepalive_idle_ms: 10_000,
            claim_wait_ms: 15_000,
            migration_wait_ms: 60_000,
            fetch_bytes: 4 << 20,
            fetch_rows: 4096,
            block_bytes: 512 << 10,
            block_events: 4096,
        }
    }
}
