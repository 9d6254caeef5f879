//! The whole presentation over the real application: what clients see.

mod agents;
mod bounds;
mod chat;
mod chat_socket;
mod client;
mod event_stream;
mod guards;
pub(crate) mod harness;
mod problems;
mod socket;
