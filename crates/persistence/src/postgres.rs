//! PostgreSQL behind the ports: with `migrations/postgres/`, the only SQL of this store.
//!
//! It is built like the store on SQLite, module by module.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`store`] | [`PostgresStore`]: opened once, shared by clones; one line for each method of a port |
//! | [`config`], [`error`] | where the database is and what bounds its use; what errors of the server mean |
//! | [`database`] | the server: its address and TLS, connections and their pool, schema |
//! | [`command`] | what changes the database, except what agents say |
//! | [`writer`] | the writers, which save what agents say: many agents in one statement |
//! | [`known_agents`] | the keys of agents, which the writers and reads remember |
//! | [`claim`] | the right to be the only server on the database |
//! | [`doctor`] | what an operator should know about the server |
//! | [`statements`] | the SQL: one file per subject, reads and changes |

pub(crate) mod claim;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod known_agents;
pub(crate) mod statements;
pub(crate) mod store;
pub(crate) mod writer;

pub use self::claim::DatabaseClaim;
pub use self::config::{Durability, Password, PostgresConfig, PostgresLimits};
pub use self::doctor::{PostgresContent, PostgresDiagnosis, Survives, postgres_doctor};
pub use self::error::PostgresOpenError;
pub use self::store::PostgresStore;
