//! The HTTP interface: REST, event streams, WebSockets, and the guard in front of them.
//!
//! **Routes and their handlers**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `vocabularies` | one folder for each kind of client; `native` is Tokenrail's own; `prompts` and `turns` are parts for all |
//! | `routes`, `resource` | [`app`]: all routes behind the guard; how the resource of one path is built |
//! | `api` | the state that all handlers share |
//! | `query`, `by_id` | what handlers read: query, cursors, headers and bodies; a request about one agent |
//! | `error`, `refusals`, `openapi` | every problem that a client can receive; which route has which; the document |
//! | `foreign_refusals` | problems in the format of another vocabulary, which the guard writes |
//! | `metrics` | what `/metrics` returns |
//!
//! **Connections, and the checks before every route**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `listen`, `socket`, `forwarded` | serves a TCP listener; accepted connections; those that the TLS part passes on |
//! | `guard` | runs before and after every route |
//! | `tickets`, `sessions`, `peer`, `limiter` | what the guard remembers and counts |
//! | `polled_sessions` | sessions of clients that poll, which outlive a request |
//! | `shared_credentials` | tickets and login codes, if several servers share one store |
//! | `derived_key` | keys that are derived from the token |
//! | `config` | access rules and limits |
//! | `waits` | timers of connections, and the turns that they take |
//!
//! **From events to bytes**
//!
//! | module | what it is for |
//! | --- | --- |
//! | `fold` | the basis of a vocabulary: a pure fold from events to frames |
//! | `frames`, `blocks`, `json` | the formats that carry a vocabulary: WebSocket frames, event streams, JSON |
//! | `websocket` | what all WebSockets share, and the path of their bytes to the socket |
//! | `events` | reads a range of an agent's events |
//! | `hex` | bytes as hexadecimal text |
//!
//! "The path of one token" in `docs/explanation/architecture.md` lists the steps of a token through all crates. In this
//! crate, they are in `vocabularies/native`: `ws/subscriptions.rs`, then `teller.rs`, `writing.rs` and the fold of the
//! dialect, then `ws/connection.rs` and `ws/outbox.rs`. `socket/streaming.rs` writes the bytes (see `websocket.rs`).
//! A launch and a cancel begin in `vocabularies/native/rest/agents.rs`.

mod api;
mod blocks;
mod by_id;
mod config;
mod derived_key;
mod error;
mod events;
mod fold;
mod foreign_refusals;
mod forwarded;
mod frames;
mod guard;
mod hex;
mod json;
mod limiter;
mod listen;
mod metrics;
mod openapi;
mod peer;
mod polled_sessions;
mod query;
mod refusals;
mod resource;
mod routes;
mod sessions;
mod shared_credentials;
mod socket;
mod tickets;
mod vocabularies;
mod waits;
mod websocket;

#[cfg(test)]
mod tests;

pub use api::{Api, RandomSource};
pub use config::{PresentationConfig, Secret, session_cookie};
pub use forwarded::{Announced, Forwarded};
pub use listen::{ListenLimits, listen};
pub use routes::{MissingPage, OWN_PATHS, app, page, routes};
pub use socket::{SocketLimits, set_limits};
pub use vocabularies::native::event_json;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub use vocabularies::native::testing;
