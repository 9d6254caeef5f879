//! HTTP in and out: REST, event streams, WebSocket, and the guards before them.
//!
//! Read in this order:
//!
//! 1. [`routes`]: the API on one screen, and [`app`], the same with its guard;
//! 2. `listen`, `guard`: what carries the routes, and what stands before every one of them;
//! 3. `rest`, `sse`, `ws`, `chat`: one module for each way of talking;
//! 4. `dialect` and `frames`: events in, bytes out, once for all readers;
//! 5. `record`, `lineage`: a turn as one document, and its chain of messages; `export`, `import`: an agent as one file;
//! 6. `dto`: every JSON name; `error`: every problem that a client can be told.

mod api;
mod chat;
mod config;
mod dialect;
mod dto;
mod error;
mod export;
mod frames;
mod guard;
mod import;
mod limiter;
mod lineage;
mod listen;
mod metrics;
mod openapi;
mod query;
mod record;
mod rest;
mod routes;
mod socket;
mod sse;
mod turn_events;
mod waits;
mod ws;

#[cfg(test)]
mod tests;

pub use api::{Api, RandomSource};
pub use config::{PresentationConfig, Secret};
pub use dialect::{agent_frames, packed_frames};
pub use dto::{event_json, packed_items};
pub use listen::{ServerLimits, listen};
pub use routes::{app, page, routes};
pub use socket::SocketLimits;
