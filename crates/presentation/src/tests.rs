//! The whole presentation over the real application: what clients see.

mod agents;
mod bounds;
mod changes;
mod chat;
mod chat_history;
mod chat_messages;
mod chat_socket;
mod client;
mod copies;
mod cors;
mod dialects;
mod edits;
mod event_stream;
mod guards;
pub(crate) mod harness;
mod images;
pub(crate) mod journals;
mod leftovers;
mod letta;
mod letta_runs;
mod lists;
mod needs;
mod packed_socket;
mod permissions;
mod problems;
mod sessions;
mod socket;
