//! SQLite behind the ports. With `selects.rs` and `migrations/`, this is all SQL of this store.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`store`] | [`SqliteStore`]: opened once, shared by clones; the methods of the ports |
//! | [`config`], [`error`] | where the store is and what bounds it; why it cannot be opened |
//! | [`database`] | the files: data folder and its lock, connections, schema, reserved disk space |
//! | [`command`] | what the writer is asked to do |
//! | [`writer`] | the one thread that writes, in groups, and what a failed COMMIT means |
//! | [`checkpoint`], [`wipe`] | the thread that moves the log into the database file; the removal of purged data |
//! | [`statements`] | the SQL: one file per subject, reads and changes |
//! | [`maintenance`] | backup, doctor, and the check at each start |

pub(crate) mod checkpoint;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod error;
pub(crate) mod maintenance;
pub(crate) mod statements;
pub(crate) mod store;
pub(crate) mod wipe;
pub(crate) mod writer;

pub use self::config::{SqliteConfig, SqliteLimits, Synchronous};
pub use self::database::folder::{DataFolder, is_in_use};
pub use self::error::OpenError;
pub use self::maintenance::backup::sqlite_backup;
pub use self::maintenance::doctor::{Fault, SqliteDiagnosis, sqlite_doctor};
pub use self::store::SqliteStore;
