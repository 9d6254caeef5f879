//! The binary: picks the adapters, starts the server, and the command line.
//!
//! 1. `compose`: every port and the adapter behind it;
//! 2. [`Server`]: starts and stops all of it;
//! 3. [`Config`]: the layers of the configuration;
//! 4. `cli`: the commands.

mod address;
mod cli;
mod clock;
mod compose;
mod config;
mod panics;
mod server;
mod token;

pub use cli::main;
pub use compose::ComposeError;
pub use config::{Config, ConfigError, Flags};
pub use server::{Server, StartError};
pub use token::TokenError;

/// Chooses the cryptography for TLS; once for the process, before the first HTTP client is made.
pub fn install_crypto() {
    // A second call finds the first one's choice, which is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
