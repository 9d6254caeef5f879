//! The whole presentation over the real application: what clients see.

mod agents;
mod bounds;
mod client;
mod copies;
mod event_stream;
mod guards;
pub(crate) mod harness;
mod problems;
mod socket;
