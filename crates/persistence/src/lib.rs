//! The stores behind the ports.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `format` | the storage format: how events become bytes and rows. Pure; every store uses it |
//! | `selects` | the columns of agents and turns that all databases read |
//! | `sqlite` | the store on SQLite |
//! | `postgres` | the store on PostgreSQL |
//! | `mover` | moves the data from SQLite to PostgreSQL |
//! | `only_node` | the one node of a store that cannot be shared, and the bus without other nodes |
//! | `orders` | how a caller waits until a writer answers |
//! | `passed_over` | turns that cannot be packed, so that they do not keep the others from being packed |
//! | `planted` | the places at which the stores are broken on purpose, to prove that tests find it |
//!
//! With `migrations/`, this is the only SQL of Tokenrail.
//!
//! The rules of an append are in [`tokenrail_ports::rules`]: they are part of what a store promises, and the store in
//! memory that tests use keeps them too.

mod format;
mod mover;
mod only_node;
mod orders;
mod passed_over;
mod planted;
mod postgres;
#[cfg(test)]
mod same_as_memory;
mod selects;
mod sqlite;
#[cfg(test)]
mod unpackable_turn;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use mover::{MoveCounts, MoveError, MoveObserver, MoveProgress, MoveStep, move_to_postgres};
pub use only_node::SilentBus;
pub use postgres::{
    Durability, NodeIdentity, Password, PostgresBus, PostgresConfig, PostgresContent, PostgresDiagnosis,
    PostgresHealth, PostgresLimits, PostgresOpenError, PostgresStore, PostgresTimes, ReplicationSlots,
    SeenNode, Survives, TableHolder, WrongServer, postgres_doctor,
};
pub use sqlite::{
    DataFolder, Fault, OpenError, SqliteConfig, SqliteDiagnosis, SqliteLimits, SqliteStore, Synchronous,
    is_in_use, sqlite_backup, sqlite_doctor,
};
