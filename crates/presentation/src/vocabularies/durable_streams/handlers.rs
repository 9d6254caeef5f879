//! The handlers of Durable Streams: one read in three modes.

mod catch_up;
mod closure;
mod event_stream;
mod long_poll;
pub(super) mod read;
mod response;
