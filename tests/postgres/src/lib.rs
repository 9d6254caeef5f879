//! A private PostgreSQL for tests. Nothing of it is left when the test program ends, however it ends.
//!
//! * [`database`]: an empty database on a server that all tests of this program share. For most tests.
//! * [`Server::start`]: a server of its own, for tests that kill it, start it again, or copy it to a standby.
//! * [`free_port`]: a port for any server that a test starts.
//!
//! The programs are those in the folder that `TOKENRAIL_TEST_POSTGRES` names. If it is not set, they are looked for on
//! `PATH` and where Debian has them. A test that finds none fails and says so, as tests with a browser do. Tests that
//! use this crate have `postgres::` in their path: `cargo xtask test` installs the programs, or leaves these tests out
//! and shows NOT RUN.
#![expect(clippy::expect_used, reason = "a test ends where its own tools fail")]

pub mod account;
mod database;
mod echo;
mod frozen;
mod instance;
mod keeper;
mod port;
mod programs;
mod proxy;
mod server;
mod standby;
mod sweeper;
mod template;
#[cfg(test)]
mod with_postgres;

use std::sync::OnceLock;

pub use database::Database;
pub use echo::Echo;
pub use frozen::FrozenBackend;
pub use instance::Flush;
pub use port::free_port;
pub use programs::VARIABLE;
pub use proxy::{Direction, LostCommit, Proxy};
pub use server::Server;
pub use standby::Replication;

/// The owner of all databases. It is no superuser, as in production.
pub const ROLE: &str = "tokenrail";

/// The password of [`ROLE`] over TCP. It has characters that a url would have to escape.
pub const PASSWORD: &str = "a p@ss:word/%41#?";

/// An empty database on the server that the tests of this program share. That server does not flush to disk.
pub fn database() -> Database {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| Server::start(Flush::Off)).database()
}
