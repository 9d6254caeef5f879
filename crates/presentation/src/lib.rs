//! HTTP in and out: REST, event streams, WebSocket, and the guards before them.
//!
//! Read in this order:
//!
//! 1. `endpoints`: the native API on one screen; [`routes`]: all routes, and [`app`], the same with the guard;
//! 2. `listen`, `socket`, `guard`: what carries the routes, and what runs before each of them; `tickets`, `peer`,
//!    `limiter`: what the guard counts and remembers;
//! 3. `fold`: what makes a vocabulary; `vocabularies`: the folds, wire names and routes of each kind of client, in one
//!    folder each;
//! 4. `rest`, `sse`, `ws`: the native routes, one module for each transport; `websocket`: what all WebSockets share;
//! 5. `frames`, `blocks`, `json`: what carries a vocabulary: WebSocket frames, event streams, JSON;
//! 6. `record`, `lineage`: a turn as one document, and its chain of messages; `export`, `import`: an agent as one file;
//! 7. `error`: every problem that a client can receive.

mod api;
mod blocks;
mod config;
mod endpoints;
mod error;
mod export;
mod fold;
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
pub use listen::{ServerLimits, listen};
pub use routes::{app, page, routes};
pub use socket::SocketLimits;
pub use vocabularies::native::{agent_frames, event_json, packed_frames, packed_items};
