//! The stores behind the ports.
//!
//! | folder | what is in it |
//! | --- | --- |
//! | `format/` | the storage format: how events become bytes and rows. Pure; every store uses it |
//! | `sqlite/` | the store on SQLite |
//! | `postgres/` | the store on PostgreSQL |
//!
//! With `migrations/`, this is the only SQL of Tokenrail.
//!
//! The rules of an append are in [`tokenrail_ports::rules`]: they are part of what a store promises, and the store in
//! memory that tests use keeps them too.

mod format;
mod postgres;
#[cfg(test)]
mod same_as_memory;
mod sqlite;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use postgres::{
    DatabaseClaim, Durability, Password, PostgresConfig, PostgresContent, PostgresDiagnosis, PostgresLimits,
    PostgresOpenError, PostgresStore, Survives, postgres_doctor,
};
pub use sqlite::{
    DataFolder, Diagnosis, Fault, OpenError, SqliteStore, StoreConfig, StoreLimits, Synchronous, backup,
    doctor, is_in_use,
};
