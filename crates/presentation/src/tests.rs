//! The whole presentation over the real application: what clients see.

mod agents;
mod bounds;
mod client;
mod event_stream;
mod guards;
pub(crate) mod harness;
mod letta;
mod problems;
mod socket;
