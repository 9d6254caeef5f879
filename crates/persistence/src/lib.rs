//! SQLite behind the ports: with migrations/, the only SQL of Tokenrail.
//!
//! Read in this order:
//!
//! 1. [`Store`]: opened once, shared by clones; what it does for the ports is one line each;
//! 2. [`StoreConfig`], [`StoreLimits`]: where it is and what bounds it;
//! 3. `writer`: the one thread that writes, in groups, and what a failed COMMIT means;
//! 4. `append`, `commands`, `archive`: the changes; `journal`, `messages`, `agents`: the reads;
//! 5. `packing`: how a batch of events becomes bytes; `rows`: how an event becomes a row; `checksum`: whether it is still
//!    the same;
//! 6. `compaction`, `checkpoint`: what goes on in the background;
//! 7. [`doctor`]: whether a database is what it must be; `start_check`: what of it each start looks at; [`backup`]: a copy
//!    of it.

mod store;

mod config;
mod error;

mod checkpoint;
mod connection;
mod folder;
mod reserve;
mod schema;
mod writer;

mod agents;
mod append;
mod archive;
mod commands;
mod journal;
mod keys;
mod messages;
mod turn_ends;
mod turns;

mod checksum;
mod columns;
mod iso;
mod packing;
mod rows;

mod backup;
mod compaction;
mod doctor;
mod start_check;
mod wipe;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use backup::backup;
pub use config::{StoreConfig, StoreLimits, Synchronous};
pub use doctor::{Diagnosis, Fault, doctor};
pub use error::OpenError;
pub use folder::is_in_use;
pub use store::Store;
