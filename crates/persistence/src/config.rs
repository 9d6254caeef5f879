//! Where the store is and what bounds it.

use std::path::PathBuf;

/// Where the store is and what bounds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// The data folder; made with mode 0700 where it is missing.
    pub folder: PathBuf,
    pub synchronous: Synchronous,
    pub limits: StoreLimits,
}

impl StoreConfig {
    /// A store in `folder` with the defaults.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), synchronous: Synchronous::default(), limits: StoreLimits::default() }
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: what was committed survives a power cut.
    #[default]
    Full,
    /// The operating system: what was committed survives the death of the server, not a power cut.
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

/// Every bound of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLimits {
    /// How many commands may wait for the writer; who comes then waits before it has queued.
    pub queued_commands: usize,
    /// How many commands one transaction takes at most.
    pub commit_max_jobs: usize,
    /// How many bytes one transaction takes at most, but for the last command in it.
    pub commit_max_bytes: usize,
    /// How often a transaction is tried whose COMMIT failed.
    pub commit_tries: u32,
    /// How many reads run at the same time, each with a connection of its own.
    pub readers: u32,
    /// How long a statement waits for a lock of another connection.
    pub busy_timeout_ms: u32,
    /// How often it is looked whether the log is to be taken over into the database file, off the path of the commits.
    pub checkpoint_interval_ms: u32,
    /// A log that is being written is taken over when so many pages of it are new.
    pub checkpoint_pages: i64,
    /// A log that has grown beyond this is cut by the writer itself.
    pub wal_max_bytes: u64,
    /// How long the writer waits for readers when it wants to empty the log: everybody who writes waits with it.
    pub wal_cut_wait_ms: u32,
    /// A database up to this size has its pages checked at each start: it takes about a second for each GiB.
    pub start_check_bytes: u64,
    /// A database up to this size is written anew after a purge, when nobody writes, so that nothing is left of what was
    /// purged.
    pub wipe_max_bytes: u64,
    /// About how many bytes of events one compacted block holds. Packing takes about 16 times as much memory.
    pub block_bytes: usize,
    /// How many events one compacted block holds at most.
    pub block_events: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            queued_commands: 1024,
            commit_max_jobs: 512,
            commit_max_bytes: 1 << 20,
            commit_tries: 3,
            readers: 4,
            busy_timeout_ms: 5000,
            checkpoint_interval_ms: 200,
            checkpoint_pages: 2048,
            wal_max_bytes: 64 << 20,
            wal_cut_wait_ms: 20,
            start_check_bytes: 256 << 20,
            wipe_max_bytes: 256 << 20,
            block_bytes: 512 << 10,
            block_events: 4096,
        }
    }
}
