//! Where the store on SQLite is and what bounds it.

use std::path::PathBuf;

/// Where the store on SQLite is and what bounds it.
#[derive(Debug, Clone)]
pub struct SqliteConfig {
    /// The data folder. It is created with mode 0700 if it does not exist.
    pub folder: PathBuf,
    pub synchronous: Synchronous,
    pub limits: SqliteLimits,
    /// Is called first on each thread that works in the background, for example to lower its priority: the thread of
    /// the checkpoints, and those that pack ended turns. It does nothing by default.
    pub before_background_work: fn(),
}

impl SqliteConfig {
    /// A store in `folder` with the defaults.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            synchronous: Synchronous::default(),
            limits: SqliteLimits::default(),
            before_background_work: || {},
        }
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: a commit survives a power cut.
    #[default]
    Full,
    /// The operating system: a commit survives the death of the server, but not a power cut.
    Normal,
}

impl Synchronous {
    pub(crate) fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Every bound of the store on SQLite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteLimits {
    /// Commands in the queue of the writer. Callers beyond that wait until there is room.
    pub queued_commands: usize,
    /// Commands in one transaction, at most.
    pub commit_max_jobs: usize,
    /// Bytes in one transaction, at most; the last command may exceed it.
    pub commit_max_bytes: usize,
    /// An agent floods if it saves this many bytes at once, and again within a second. Its commands take turns with
    /// all others, and wait while the log is restarted.
    pub flood_bytes: usize,
    /// How long they wait for the restart of the log, at most.
    pub flood_wait_ms: u32,
    /// After each transaction of a flood, the flood pauses this many times as long as the transaction took, as long
    /// as others write.
    pub flood_rest: u32,
    /// Others count as writing if they wrote within this time. No pause is longer.
    pub flood_yield_ms: u32,
    /// If small writes of two agents have reached the writer within this time, it yields once before it begins the
    /// next transaction, so that others can add their writes to it. The time includes the commit of the first write,
    /// so a slow machine may never yield. 0: never.
    pub gather_us: u32,
    /// How many times a transaction is tried if its COMMIT fails.
    pub commit_tries: u32,
    /// Reads that run at the same time, each on its own connection.
    pub readers: u32,
    /// How long a statement waits for a lock that another connection holds.
    pub busy_timeout_ms: u32,
    /// How often the checkpoint thread checks whether a checkpoint is due.
    pub checkpoint_interval_ms: u32,
    /// A log that is being written to is checkpointed when this many of its pages are new.
    pub checkpoint_pages: i64,
    /// If the log is longer than this, the writer itself restarts it.
    pub wal_bytes: u64,
    /// How long the writer waits for readers when it restarts the log. All other writes wait too.
    pub wal_cut_wait_ms: u32,
    /// A database up to this size has its pages checked at each start, which takes about a second per GiB.
    pub start_check_bytes: u64,
    /// A database up to this size is rewritten after a purge, when nobody writes, so that nothing of the purged data
    /// is left.
    pub wipe_bytes: u64,
    /// Bytes of events in one compacted block, about. Packing takes about 16 times as much memory. All other writes
    /// wait while a block takes the place of its batches. Larger blocks save only a little more space.
    pub block_bytes: usize,
    /// Events in one compacted block, at most.
    pub block_events: usize,
}

impl Default for SqliteLimits {
    fn default() -> Self {
        Self {
            queued_commands: 1024,
            commit_max_jobs: 512,
            commit_max_bytes: 1 << 20,
            flood_bytes: 16 << 10,
            flood_wait_ms: 500,
            flood_rest: 8,
            flood_yield_ms: 100,
            gather_us: 200,
            commit_tries: 3,
            readers: 4,
            busy_timeout_ms: 5000,
            checkpoint_interval_ms: 200,
            checkpoint_pages: 2048,
            wal_bytes: 64 << 20,
            wal_cut_wait_ms: 5,
            start_check_bytes: 256 << 20,
            wipe_bytes: 256 << 20,
            block_bytes: 128 << 10,
            block_events: 1024,
        }
    }
}
