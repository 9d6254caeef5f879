//! PostgreSQL behind the ports. With `selects.rs` and `migrations/postgres/`, this is all SQL of this store.
//!
//! It is built like the store on SQLite, module by module.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`store`] | [`PostgresStore`]: opened once, shared by clones; the methods of the ports |
//! | [`config`], [`error`] | where the database is and what bounds its use; what errors of the server mean |
//! | [`database`] | the server: which one it is, its address and TLS, connections, schema |
//! | [`command`] | what changes the database, except what agents say |
//! | [`writer`] | the writers, which save what agents say: many agents in one statement |
//! | [`failover`] | what is repeated after a failover to a server that lacks the newest commits |
//! | [`pool`] | the connections that reads and commands share |
//! | [`known_agents`] | the keys of agents, which the writers and reads remember |
//! | [`figures`] | what the writers have done, for metrics |
//! | [`membership`] | which node the store is, once it has joined |
//! | [`bus`] | hints between the nodes of the database |
//! | [`doctor`] | what an operator should know about the server |
//! | [`unfinished_move`] | the mark of a move from a data folder into this database |
//! | [`statements`] | the SQL: one file per subject, reads and changes |

pub(crate) mod bus;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod failover;
pub(crate) mod figures;
pub(crate) mod known_agents;
pub(crate) mod membership;
pub(crate) mod pool;
pub(crate) mod statements;
pub(crate) mod store;
pub(crate) mod unfinished_move;
pub(crate) mod writer;

pub use self::bus::PostgresBus;
pub use self::config::{Durability, NodeIdentity, Password, PostgresConfig, PostgresLimits};
pub use self::doctor::{
    PostgresContent, PostgresDiagnosis, PostgresHealth, PostgresTimes, ReplicationSlots, SeenNode, Survives,
    postgres_doctor,
};
pub use self::error::{PostgresOpenError, TableHolder, WrongServer};
pub use self::store::PostgresStore;
