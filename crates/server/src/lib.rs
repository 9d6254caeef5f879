//! The `tokenrail` program: chooses the adapters, starts the server, and implements the command line.
//!
//! 1. `compose`: every port and the adapter behind it; `store`: SQLite or PostgreSQL;
//! 2. [`Server`]: starts and stops everything;
//! 3. [`Config`]: the layers of the configuration;
//! 4. `cli`: the commands.

mod address;
mod cli;
mod clock;
mod compose;
mod config;
mod panics;
mod server;
mod store;
mod tls;
mod token;

pub use cli::main;
pub use compose::ComposeError;
pub use config::{Config, ConfigError, EnvToken, Flags, Given, Target};
pub use server::{Server, StartError};
pub use store::OpenStoreError;
pub use token::TokenError;

/// Selects the cryptography for TLS. Must be called once per process, before the first HTTP client is created.
pub fn install_crypto() {
    // A second call fails, because the first one has already selected the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
