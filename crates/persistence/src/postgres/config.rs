//! Where the database is and what bounds its use.

use std::fmt;
use std::path::PathBuf;

/// Where the database is and what bounds its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// `postgres://USER@HOST[:PORT][,HOST…]/DATABASE[?PARAMETER=VALUE&…]`, without a password. The parameters are
    /// those of libpq that the driver knows, and `sslmode` and `sslrootcert`.
    pub url: String,
    pub password: Option<Password>,
    pub durability: Durability,
    /// Which node the store is. Without it, the store cannot join: it reads and maintains only.
    pub node: Option<NodeIdentity>,
    /// Where the store notes which server of the database it has used, so that it notices a former primary.
    pub server_file: Option<PathBuf>,
    /// For tests: the program knows one more step of the schema, as the next release would.
    pub has_test_step: bool,
    pub limits: PostgresLimits,
}

/// What distinguishes a node from the others of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The identity of its data folder: [`DataFolder::node`](crate::DataFolder::node).
    pub folder: [u8; 16],
    /// A label for people, such as the name of the host.
    pub name: String,
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
            node: None,
            server_file: None,
            has_test_step: false,
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
    /// Connections for everything else. Half of them are for commands and half for reads, and at least one for each.
    /// Further commands and reads wait.
    pub pool_connections: usize,
    /// How long a call waits while all connections that it may use are in use.
    pub pool_wait_ms: u64,
    /// Connections on which the node looks for what is new: the events that are followed, and what other nodes have
    /// saved for it. They do not wait for what clients ask.
    pub lookout_connections: usize,
    /// Connections on which the node takes over from lost nodes and claims launches.
    pub takeover_connections: usize,
    /// Connections for the beats of the node. They do not wait for reads and commands.
    pub beat_connections: usize,
    /// Connections for questions about the nodes, which are answered while commits wait for a standby.
    pub node_connections: usize,
    /// Connections to one host that are being opened at the same time, at most. One whose first write is not answered
    /// counts until it is, so a node adds no more than these to a server whose commits wait for a standby.
    pub openings: usize,
    /// How long to wait for a new connection.
    pub connect_timeout_ms: u64,
    /// How long to wait for the answer to a write. After that, its outcome is unknown, unless its commit was not sent.
    pub answer_timeout_ms: u64,
    /// How long the store tries to find out what became of a command, and to do it if it was not saved.
    pub repeat_timeout_ms: u64,
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
    /// How long a node that joins may take to adopt the agents of a program that knew no nodes.
    pub adoption_timeout_ms: u64,
    /// How long ago a turn must have ended before a node packs it whose home is another node.
    pub compact_others_after_ms: u64,
    /// How far back [`touched`](tokenrail_ports::IAgentRepository::touched) looks again, because clocks are not exact.
    pub touch_slack_ms: u64,
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
    /// Hints that wait to be sent to other nodes, and hints of other nodes that wait to be taken, at most. If there are
    /// more, all of them become one that says to look at everything.
    pub hints: usize,
    /// Bytes of one NOTIFY. PostgreSQL takes less than 8000.
    pub hint_payload_bytes: usize,
    /// The pause after hints were sent, at least. What is added meanwhile goes together.
    pub hint_pause_ms: u64,
    /// The same, for each node of the database: every NOTIFY wakes all of them.
    pub hint_pause_per_node_ms: u64,
    /// How often a node checks that it still hears.
    pub hint_check_ms: u64,
    /// How long it waits to hear its own hint. After that, it opens new connections.
    pub hint_wait_ms: u64,
    /// The pause after a connection for hints could not be opened or used.
    pub hint_retry_ms: u64,
    /// How long the store keeps what was acknowledged, to repeat it after a failover.
    pub kept_ms: u64,
    /// Bytes of it, at most, about. Imports do not count.
    pub kept_bytes: usize,
    /// Bytes of imports that the store keeps, at most, about. Those of a large import push nothing else out.
    pub kept_import_bytes: usize,
    /// How long after a failover a node waits, at most, until the others have repeated what they kept. Until then, it
    /// takes over no agents, claims no launches, and declares no node lost.
    pub catch_up_ms: u64,
    /// The same, at least: the join of another node may be lost, and not repeated yet.
    pub catch_up_least_ms: u64,
    /// The pause before something is repeated again that builds on what another node has to repeat.
    pub catch_up_pause_ms: u64,
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
            pool_wait_ms: 10_000,
            lookout_connections: 2,
            takeover_connections: 2,
            beat_connections: 1,
            node_connections: 1,
            openings: 4,
            connect_timeout_ms: 5000,
            answer_timeout_ms: 5000,
            repeat_timeout_ms: 10_000,
            read_timeout_ms: 30_000,
            lock_timeout_ms: 2000,
            idle_transaction_ms: 10_000,
            client_check_ms: 2000,
            tcp_user_timeout_ms: 10_000,
            keepalive_idle_ms: 10_000,
            adoption_timeout_ms: 600_000,
            compact_others_after_ms: 60_000,
            touch_slack_ms: 1000,
            migration_wait_ms: 60_000,
            fetch_bytes: 4 << 20,
            fetch_rows: 4096,
            block_bytes: 512 << 10,
            block_events: 4096,
            hints: 4096,
            hint_payload_bytes: 7900,
            hint_pause_ms: 5,
            hint_pause_per_node_ms: 2,
            hint_check_ms: 5000,
            hint_wait_ms: 2000,
            hint_retry_ms: 200,
            kept_ms: 60_000,
            kept_bytes: 32 << 20,
            kept_import_bytes: 32 << 20,
            catch_up_ms: 30_000,
            catch_up_least_ms: 3000,
            catch_up_pause_ms: 250,
        }
    }
}
