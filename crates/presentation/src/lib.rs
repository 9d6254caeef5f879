//! The HTTP interface: REST, event streams, WebSockets, and the guard in front of them.
//!
//! Read in this order:
//!
//! 1. `endpoints`: the native API on one screen; [`routes`]: all routes; [`app`]: all routes behind the guard;
//! 2. `listen`, `socket`, `guard`: the connections, and the checks before every route; `tickets`, `sessions`, `peer`,
//!    `limiter`: what the guard counts and remembers;
//! 3. `fold`: how a vocabulary turns events into frames; `vocabularies`: the folds, wire names and routes of each kind
//!    of client, one folder each;
//! 4. `rest`, `sse`, `ws`: the native routes, one module for each transport; `websocket`: what all WebSockets share;
//! 5. `frames`, `blocks`, `json`: the formats that carry a vocabulary: WebSocket frames, event streams, JSON;
//! 6. `record`, `lineage`: a turn as one document, and its chain of messages; `export`, `import`: an agent as one file;
//! 7. `error`: every problem that a client can receive.

mod api;
mod blocks;
mod by_id;
mod config;
mod derived_key;
mod endpoints;
mod error;
mod events;
mod export;
mod fold;
mod forwarded;
mod frames;
mod guard;
mod hex;
mod import;
mod json;
mod limiter;
mod lineage;
mod listen;
mod metrics;
mod openapi;
mod peer;
mod query;
mod questions;
mod record;
mod refusals;
mod resource;
mod rest;
mod routes;
mod sessions;
mod socket;
mod sse;
mod tickets;
mod turn_events;
mod vocabularies;
mod waits;
mod websocket;
mod ws;

#[cfg(test)]
mod tests;

pub use api::{Api, RandomSource};
pub use config::{PresentationConfig, Secret};
pub use forwarded::{Announced, Forwarded};
pub use listen::{ServerLimits, listen};
pub use routes::{app, page, routes};
pub use socket::{SocketLimits, set_limits};
pub use vocabularies::native::{agent_frames, event_json, packed_frames, packed_items};
